package push

import (
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain prints what a push would do, and connects to nothing: statements, batches and memory. What a server would
// have changed about it (a flavour, a packet limit) it cannot know, and says so.
func Explain(out io.Writer, c *config.Push, drivers *loader.Registry) error {
	p, err := sketch(c, drivers)
	if err != nil {
		return err
	}
	c, made, contract, mode := &p.Config, p.plan, p.contract, verify.Mode(p.Config.Verify)
	rows, batches := humanize.Comma(made.Rows), humanize.Comma(made.Batches())
	if made.ByDuration {
		rows, batches = "as many as fit into "+c.Duration.String()+",", "any number"
	}
	keys := fmt.Sprintf("keys from %d", made.FirstKey)
	if c.Append && !c.FirstKey.Given {
		keys = "keys behind those in the table"
	}
	w := &printer{out: out}
	w.line("dry run: nothing was connected to, so limits of the server are not in this plan")
	w.line("target    %s, table %s", p.target, p.target.Table)
	if via := c.Via.String(); via != "" {
		w.line("via       %s", via)
	}
	w.line("contract  method %s, format %s, %s%s", contract.Method, contract.Format, guarantee(contract), afresh(p.encoder))
	w.line("rows      %s of dataset %s, %s a row, %s, seed %d", rows, made.Dataset, humanize.IBytes(uint64(made.RowBytes)), keys, made.Seed)
	w.line("batches   %s of %s rows, %s each, by %d workers", batches, humanize.Comma(made.BatchRows), humanize.IBytes(uint64(made.BatchBytes())), made.Workers)
	if contract.Staged() {
		w.line("groups    of %s stored batches, %s committed at a time", humanize.Comma(contract.GroupBatches), humanize.Comma(int64(contract.Commits)))
	}
	w.line("memory    %d buffers = %s", made.Buffers, humanize.IBytes(uint64(made.Memory)))
	if c.Prices != "" {
		w.line("price     %s", priceText(p.estimate()))
	}
	w.line("verify    %s: %s", mode, english.Plural(mode.Scans(), "table scan", ""))
	for _, warning := range p.warnings {
		w.line("warning   %s", warning)
	}
	when := ""
	for _, s := range p.driver.Explain(p.target, p.preparation("RUN", loader.CreateMode(c.Create))) {
		if s.When != when {
			when = s.When
			w.line("\n-- %s", when)
		}
		w.line("%s;", s.Text)
	}
	return w.err
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

// printer prints lines until the first error.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format+"\n", args...)
	}
}
