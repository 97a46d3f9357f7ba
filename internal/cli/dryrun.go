package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
)

// dryRun prints what a push would do, without connecting: statements, batches and memory.
func (a *app) dryRun(c *config.Push) error {
	o, err := push.NewOutline(c, a.drivers)
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.Stdout, outline(c, o))
	return err
}

func outline(c *config.Push, o push.Outline) string {
	p, mode := &o.Plan, verify.Mode(c.Verify)
	rows, batches := humanize.Comma(p.Rows), humanize.Comma(p.Batches())
	if p.ByDuration() {
		rows, batches = "as many as fit into "+(c.WarmUp+c.Duration).String()+",", "any number"
	}
	keys := fmt.Sprintf("keys from %d", p.FirstKey)
	if c.Append && !c.FirstKey.Given {
		keys = "keys behind those in the table"
	}

	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	asked := "nothing was connected to"
	if c.Like != "" {
		asked = "table " + c.Like + " was read, and nothing else was asked"
	}
	line("dry run: %s, so limits of the server are not in this plan", asked)
	line("target    %s, table %s", o.Target, o.Target.Table)
	if via := c.Staging.String(); via != "" {
		line("via       %s", via)
	}
	line("contract  method %s, format %s, %s", p.Method, p.Format, guarantee(p))
	line("rows      %s of dataset %s, %s a row, %s, seed %d", rows, p.DatasetID(), humanize.IBytes(uint64(p.RowBytes)), keys, p.Seed)
	line("batches   %s of %s rows, %s each, by %d workers",
		batches, humanize.Comma(p.BatchRows), humanize.IBytes(uint64(p.BatchBytes())), p.Workers)
	if p.Staged() {
		line("groups    of %s stored batches, %s committed at a time", humanize.Comma(p.GroupBatches), humanize.Comma(int64(p.Commits)))
	}
	samples := ""
	if p.Samples > 0 {
		samples = ", and up to " + humanize.IBytes(uint64(p.Samples)) + " for the files of samples"
	}
	line("memory    %d buffers = %s%s", p.Buffers, humanize.IBytes(uint64(p.Memory)), samples)
	line("verify    %s: %s", mode, english.Plural(mode.Scans(), "table scan", ""))
	for _, warning := range o.Warnings {
		line("warning   %s", warning)
	}

	writeStatements(&text, o.Statements)
	return text.String()
}

func writeStatements(to *strings.Builder, all []loader.Statement) {
	when := ""
	for _, s := range all {
		if s.When != when {
			when = s.When
			fmt.Fprintf(to, "\n-- %s\n", when)
		}
		if s.Text != "" {
			fmt.Fprintf(to, "%s;\n", s.Text)
		}
	}
}

func guarantee(p *run.Plan) string {
	text := "delivery " + string(p.Delivery)
	if p.Dedup != loader.DedupNone {
		text += " by " + p.Dedup.String()
	}
	if _, stamped := p.Encoder.(encode.Stamper); !stamped {
		text += ", every batch encoded afresh"
	}
	return text
}
