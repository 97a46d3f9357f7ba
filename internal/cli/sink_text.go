package cli

import (
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"

	"github.com/terapush/terapush/internal/units"
)

// sinkHints returns the text that lists the ports and how to push into them.
func sinkHints(f sinkFlags, servers openSinks, at map[string]string) string {
	var b strings.Builder
	if f.options.NoCount {
		b.WriteString("terapush sink drops what it takes in unread: its answers prove nothing, and its figures are ceilings.\n\n")
	} else {
		b.WriteString("terapush sink counts what it takes in and keeps nothing.\n\n")
	}
	out := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, s := range servers {
		fmt.Fprintf(out, "%s\t%s\t%s\n", s.name, at[s.name], s.what)
	}
	_ = out.Flush() // a Builder takes everything

	b.WriteString("\nTo push into it:\n\n")
	for _, s := range servers {
		if command := pushCommand(f, s.sinkProtocol, at); command != "" {
			fmt.Fprintf(&b, "  %s\n", command)
		}
	}
	if f.acksNothing() {
		b.WriteString("\nPushes to Databend and Doris take an answer of no rows for a failure: they need --row-bytes, and Doris the exact size.\n")
	}
	b.WriteString("\nThese connections are plain. Every port but raw takes TLS as well")
	if f.cert == "" {
		b.WriteString(", with a self-signed certificate")
	}
	b.WriteString(".\nCtrl-C ends it.\n")
	return b.String()
}

// acksNothing reports whether every load is answered with no rows.
func (f *sinkFlags) acksNothing() bool { return f.options.NoCount && f.rowBytes == 0 }

// pushCommand returns the command that pushes by a protocol, or "".
func pushCommand(f sinkFlags, p sinkProtocol, at map[string]string) string {
	target := p.target
	for name, address := range at {
		host, port, _ := net.SplitHostPort(address)
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			address = net.JoinHostPort(ownAddresses(host)[0], port)
		}
		target = strings.NewReplacer("{"+name+"}", address, "{"+name+":port}", port).Replace(target)
	}
	if target == "" || strings.Contains(target, "{") || p.compares && f.acksNothing() {
		return "" // a push to Doris needs doris-sql too, which may not be open
	}
	environment, payload, proof := "", "", "ack"
	if f.options.NoCount {
		proof = "none"
	}
	switch p.name {
	case "doris": // it has no type for bytes, and a push that verifies waits until rows are visible
		payload, proof = " --payload-kind text", "none"
	case "s3":
		environment = "AWS_ACCESS_KEY_ID=sink AWS_SECRET_ACCESS_KEY=sink "
	}
	return environment + "terapush push " + units.ShellWord(target) + payload + " --create never --delivery at-least-once --verify " + proof
}

// sinkTable prints what arrived.
func sinkTable(to io.Writer, f sinkFlags, servers openSinks) error {
	out := tabwriter.NewWriter(to, 0, 8, 2, ' ', tabwriter.AlignRight)
	head := "\n\tconnections\tstatements\trows\tbytes\tGiB/s\t"
	if f.fail > 0 {
		head += "told to fail\t"
	}
	if f.options.CRC {
		head += "CRC-32C\t"
	}
	fmt.Fprintln(out, head)
	for _, s := range servers {
		took := s.server.Stats()
		perSecond := 0.0
		if busy := s.server.Busy().Seconds(); busy > 0 {
			perSecond = float64(took.Bytes) / busy / (1 << 30)
		}
		line := fmt.Sprintf("%s\t%d\t%d\t%d\t%s\t%.2f\t", s.name, took.Connections, took.Statements, took.Rows,
			units.Bytes(took.Bytes), perSecond)
		if f.fail > 0 {
			line += fmt.Sprintf("%d\t", took.Failed)
		}
		if f.options.CRC {
			line += took.CRC + "\t"
		}
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}
