package push

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
)

// Check returns every problem of a configuration that can be found without a connection.
func Check(c *config.Push, drivers *loader.Registry) error {
	_, err := dryRun(c, drivers)
	return err
}

// Outline returns the plan of a push and its warnings, as far as they are known without a server. It fails as Check
// does.
func Outline(c *config.Push, drivers *loader.Registry) (run.Plan, []string, error) {
	p, err := dryRun(c, drivers)
	if err != nil {
		return run.Plan{}, nil, err
	}
	return p.plan, p.notes.list, nil
}

// dryRun plans a push of a copy of the configuration without connecting.
func dryRun(c *config.Push, drivers *loader.Registry) (*push, error) {
	p := &push{Job: Job{Config: *c, Drivers: drivers}}
	p.connectParts(host.LocalLink(context.Background()))
	if err := p.configure(); err != nil {
		return nil, err
	}
	return p, nil
}

// Explain prints what a push would do, without connecting: statements, batches and memory. What depends on the server,
// as its flavour and limits, is not in it.
func Explain(out io.Writer, c *config.Push, drivers *loader.Registry) error {
	p, err := dryRun(c, drivers)
	if err != nil {
		return err
	}
	p.state.id = "RUN"
	c, made, mode := &p.Config, &p.plan, verify.Mode(p.Config.Verify)
	rows, batches := humanize.Comma(made.Rows), humanize.Comma(made.Batches())
	if made.ByDuration() {
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
	if _, stamped := made.Encoder.(encode.Stamper); !stamped {
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
	line("verify    %s: %s", mode, english.Plural(mode.Scans(), "table scan", ""))
	for _, warning := range p.notes.list {
		line("warning   %s", warning)
	}
	when := ""
	for _, s := range p.target.driver.Explain(p.target.Target, p.preparation(loader.CreateMode(c.Create))) {
		if s.When != when {
			when = s.When
			line("\n-- %s", when)
		}
		line("%s;", s.Text)
	}
	_, err = io.WriteString(out, text.String())
	return err
}
