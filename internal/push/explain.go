package push

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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

// Check returns every problem of a configuration that can be found without a connection.
func Check(c *config.Push, drivers *loader.Registry) error {
	_, err := dryRun(c, drivers)
	return err
}

// Outline returns the plan of a push and its warnings, as far as they are known without a server. It fails as Check
// does.
func Outline(c *config.Push, drivers *loader.Registry) (config.Plan, []string, error) {
	p, err := dryRun(c, drivers)
	if err != nil {
		return config.Plan{}, nil, err
	}
	return p.plan.Plan, p.notes.list, nil
}

// dryRun plans a push of a copy of the configuration without connecting.
func dryRun(c *config.Push, drivers *loader.Registry) (*push, error) {
	p := &push{Job: Job{Config: *c, Drivers: drivers}}
	p.connectParts(host.LocalLink(context.Background()))
	_, badMode := verify.ParseMode(p.Config.Verify)
	if err := joinOnce(p.configure(), badMode); err != nil {
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

// joinOnce joins errors without repetitions: two steps may find the same problem.
func joinOnce(problems ...error) error {
	var all []error
	seen := map[string]bool{"": true}
	if err := errors.Join(problems...); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !seen[line] {
				all = append(all, errors.New(line))
			}
			seen[line] = true
		}
	}
	return errors.Join(all...)
}

// Explain prints what a push would do, without connecting: statements, batches and memory. What depends on the server,
// as its flavour and limits, is not in it.
func Explain(out io.Writer, c *config.Push, drivers *loader.Registry) error {
	p, err := dryRun(c, drivers)
	if err != nil {
		return err
	}
	c, made, mode := &p.Config, &p.plan, verify.Mode(p.Config.Verify)
	rows, batches := humanize.Comma(made.Rows), humanize.Comma(made.Batches())
	if made.ByDuration {
		rows, batches = "as many as fit into "+(c.WarmUp+c.Duration).String()+",", "any number"
	}
	keys := fmt.Sprintf("keys from %d", made.FirstKey)
	if c.Append && !c.FirstKey.Given {
		keys = "keys behind those in the table"
	}
	guarantee := "delivery " + string(made.Delivery)
	if made.Dedup != loader.DedupNone {
		guarantee += " by " + made.Dedup.String()
	}
	if _, stamped := made.encoder.(encode.Stamper); !stamped {
		guarantee += ", every batch encoded afresh"
	}
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	line("dry run: nothing was connected to, so limits of the server are not in this plan")
	line("target    %s, table %s", &p.target, p.target.Table)
	if via := c.Staging.String(); via != "" {
		line("via       %s", via)
	}
	line("contract  method %s, format %s, %s", made.Method, made.Format, guarantee)
	line("rows      %s of dataset %s, %s a row, %s, seed %d", rows, made.Dataset, humanize.IBytes(uint64(made.RowBytes)), keys, made.Seed)
	line("batches   %s of %s rows, %s each, by %d workers",
		batches, humanize.Comma(made.BatchRows), humanize.IBytes(uint64(made.BatchBytes())), made.Workers)
	if made.Staged() {
		line("groups    of %s stored batches, %s committed at a time", humanize.Comma(made.GroupBatches), humanize.Comma(int64(made.Commits)))
	}
	line("memory    %d buffers = %s", made.Buffers, humanize.IBytes(uint64(made.Memory)))
	if c.Prices != "" {
		line("price     %s", p.estimatePrice())
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

// price returns the cost of this process. Of the requests it counts those that carry rows: puts, and for a staged
// method one get of each object by the database.
func (p *plan) price(s event.Snapshot, caps loader.Caps, started time.Time) report.Price {
	u := host.Usage{WireBytes: s.WireBytes, Time: s.At.Sub(started)}
	switch {
	case p.Staged():
		u.Puts, u.Gets = s.StoredBatches, s.StoredBatches
	case caps.StoresObjects():
		u.Puts = s.Attempts // failed requests cost as well
	}
	return p.prices.Cost(u)
}

// estimatePrice returns the cost of the planned run, as far as its traffic and time are known.
func (p *push) estimatePrice() string {
	caps, _ := p.target.driver.Check(p.target.Target) // dryRun has seen its error
	rate, note := float64(p.Config.MaxRate), ""
	seconds, bytes := 0.0, float64(p.plan.Rows*p.plan.EncodedRowBytes)
	if p.plan.ByDuration {
		seconds = (p.Config.WarmUp + p.Config.Duration).Seconds()
		bytes, note = rate*seconds, "traffic and requests are not known before"
	} else if p.plan.prices.InstancePerHour > 0 {
		note = "without the instance, whose time is not known before"
	}
	if rate > 0 {
		seconds, note = bytes/rate, "at --max-rate all the time"
	}
	u := host.Usage{WireBytes: int64(bytes), Time: time.Duration(seconds * float64(time.Second))}
	if caps.StoresObjects() {
		u.Puts = int64(math.Ceil(bytes / float64(p.plan.BatchBytes())))
	}
	if caps.Staged {
		u.Gets = u.Puts
	}
	price := p.plan.prices.Cost(u)
	switch {
	case len(price.Items) == 0 && note == "":
		return "nothing: no price of the file is for what the run takes"
	case len(price.Items) == 0:
		return "not known before"
	}
	text := fmt.Sprintf("about %s %s", money(price.Total), price.Currency)
	for _, item := range price.Items {
		text += ", " + item.Name + " " + money(item.Cost)
	}
	if note != "" {
		text += ", " + note
	}
	return text
}

// money formats an amount with two decimals, smaller ones with two digits.
func money(amount float64) string {
	if amount != 0 && amount < 0.01 {
		return fmt.Sprintf("%.2g", amount)
	}
	return fmt.Sprintf("%.2f", amount)
}
