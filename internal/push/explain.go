package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Check refuses what no server could make good. It tells all that it can find at once, prints nothing, and connects to
// nothing.
func Check(c *config.Push, drivers *loader.Registry) error {
	_, err := dryRun(c, drivers)
	return err
}

// Outline returns the plan of a push in numbers, as far as it can be known without a server, with what it warns of. It
// refuses what Check does.
func Outline(c *config.Push, drivers *loader.Registry) (config.Plan, []string, error) {
	p, err := dryRun(c, drivers)
	if err != nil {
		return config.Plan{}, nil, err
	}
	return p.plan.Plan, p.notes.list, nil
}

// dryRun plans a push of a copy of the configuration, as far as that is possible without a server.
func dryRun(c *config.Push, drivers *loader.Registry) (*push, error) {
	p := &push{Job: Job{Config: *c, Drivers: drivers}}
	p.connectParts(host.LocalLink(context.Background()))
	_, verifying := verify.ParseMode(p.Config.Verify)
	if err := joinOnce(p.configure(), verifying); err != nil {
		return nil, err
	}
	caps, err := p.target.driver.Check(p.target.Target)
	if err != nil {
		return nil, err
	}
	p.plan.adjustWorkers(caps)
	if err := p.plan.negotiate(caps); err != nil {
		return nil, err
	}
	return p, p.plan.fix(p.Config.FirstKey.Key)
}

// joinOnce joins problems, each of them once: two steps may come upon the same.
func joinOnce(problems ...error) error {
	var all []error
	told := map[string]bool{}
	var add func(err error)
	add = func(err error) {
		if many, is := err.(interface{ Unwrap() []error }); is { //nolint:errorlint // the joined errors themselves are wanted
			for _, one := range many.Unwrap() {
				add(one)
			}
			return
		}
		if err != nil && !told[err.Error()] {
			told[err.Error()] = true
			all = append(all, err)
		}
	}
	for _, err := range problems {
		add(err)
	}
	return errors.Join(all...)
}

// Explain prints what a push would do, and connects to nothing: statements, batches and memory. What a server would
// have changed about it (a flavour, a packet limit) it cannot know, and says so.
func Explain(out io.Writer, c *config.Push, drivers *loader.Registry) error {
	p, err := dryRun(c, drivers)
	if err != nil {
		return err
	}
	c, made, mode := &p.Config, &p.plan, verify.Mode(p.Config.Verify)
	rows, batches := humanize.Comma(made.Rows), humanize.Comma(made.Batches())
	if made.ByDuration {
		rows, batches = "as many as fit into "+c.Duration.String()+",", "any number"
	}
	keys := fmt.Sprintf("keys from %d", made.FirstKey)
	if c.Append && !c.FirstKey.Given {
		keys = "keys behind those in the table"
	}
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("dry run: nothing was connected to, so limits of the server are not in this plan")
	line("target    %s, table %s", &p.target, p.target.Table)
	if via := c.Via.String(); via != "" {
		line("via       %s", via)
	}
	line("contract  method %s, format %s, %s%s", made.Method, made.Format, guarantee(made.Contract), afresh(made.encoder))
	line("rows      %s of dataset %s, %s a row, %s, seed %d", rows, made.Dataset, humanize.IBytes(uint64(made.RowBytes)), keys, made.Seed)
	line("batches   %s of %s rows, %s each, by %d workers", batches, humanize.Comma(made.BatchRows), humanize.IBytes(uint64(made.BatchBytes())), made.Workers)
	if made.Staged() {
		line("groups    of %s stored batches, %s committed at a time", humanize.Comma(made.GroupBatches), humanize.Comma(int64(made.Commits)))
	}
	line("memory    %d buffers = %s", made.Buffers, humanize.IBytes(uint64(made.Memory)))
	if c.Prices != "" {
		line("price     %s", priceText(p.estimatePrice()))
	}
	line("verify    %s: %s", mode, english.Plural(mode.Scans(), "table scan", ""))
	for _, warning := range p.notes.list {
		line("warning   %s", warning)
	}
	when := ""
	for _, s := range p.target.driver.Explain(p.target.Target, p.preparation("RUN", loader.CreateMode(c.Create))) {
		if s.When != when {
			when = s.When
			line("\n-- %s", when)
		}
		line("%s;", s.Text)
	}
	_, err = io.WriteString(out, text.String())
	return err
}

func guarantee(c loader.Contract) string {
	if c.Dedup == loader.DedupNone {
		return "delivery " + string(c.Delivery)
	}
	return fmt.Sprintf("delivery %s by %s", c.Delivery, c.Dedup)
}

// afresh says where buffers are not reused: what cannot be stamped costs its encoding for every batch.
func afresh(e encode.Encoder) string {
	if _, stamped := e.(encode.Stamper); stamped {
		return ""
	}
	return ", every batch encoded afresh"
}

// price is what this process of the run has cost. The requests are those that carry rows: puts, and of a staged method
// one get for each object, by which the database reads it. What looks at the store and tidies it up is not counted.
func (p *plan) price(s event.Snapshot, caps loader.Caps, started time.Time) report.Price {
	u := host.Usage{WireBytes: s.WireBytes, Time: s.At.Sub(started)}
	switch {
	case p.Staged():
		u.Puts, u.Gets = s.StoredBatches, s.StoredBatches
	case caps.StoresObjects():
		u.Puts = s.Attempts // one that failed was a request all the same
	}
	return p.prices.Cost(u)
}

// estimatePrice is what the planned run would cost, and what of it nobody can know before. Bytes are those of the bodies: what
// the protocol puts around them is a percent or two.
func (p *push) estimatePrice() (price report.Price, open []string) {
	caps, _ := p.target.driver.Check(p.target.Target) // which the plan was made with
	rows, took := p.plan.Rows, time.Duration(0)
	rate := int64(p.Config.MaxRate)
	switch {
	case p.plan.ByDuration && rate > 0:
		took = p.Config.Duration
		rows = int64(took.Seconds() * float64(rate) / float64(p.plan.EncodedRowBytes))
		open = append(open, "at --max-rate all the time")
	case p.plan.ByDuration:
		took, rows = p.Config.Duration, 0
		open = append(open, "traffic and requests are not known before")
	case rate > 0:
		took = time.Duration(float64(rows*p.plan.EncodedRowBytes) / float64(rate) * float64(time.Second))
		open = append(open, "at --max-rate all the time")
	case p.plan.prices.InstancePerHour > 0:
		open = append(open, "without the instance, whose time is not known before")
	}
	u := host.Usage{WireBytes: rows * p.plan.EncodedRowBytes, Time: took}
	if caps.StoresObjects() {
		u.Puts = (rows + p.plan.BatchRows - 1) / p.plan.BatchRows
	}
	if caps.Staged {
		u.Gets = u.Puts
	}
	return p.plan.prices.Cost(u), open
}

// priceText is a price in one line.
func priceText(price report.Price, open []string) string {
	switch {
	case len(price.Items) == 0 && len(open) == 0:
		return "nothing: no price of the file is for what the run takes"
	case len(price.Items) == 0:
		return "not known before"
	}
	parts := []string{fmt.Sprintf("about %s %s", money(price.Total), price.Currency)}
	for _, item := range price.Items {
		parts = append(parts, fmt.Sprintf("%s %s", item.Name, money(item.Cost)))
	}
	return strings.Join(append(parts, open...), ", ")
}

// money has two decimals, and more where that would be nothing.
func money(amount float64) string {
	if amount != 0 && amount < 0.01 {
		return fmt.Sprintf("%.2g", amount)
	}
	return fmt.Sprintf("%.2f", amount)
}
