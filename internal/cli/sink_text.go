package cli

import (
	"fmt"
	"io"
	"net"
	"strings"
	"text/tabwriter"

	"github.com/terapush/terapush/internal/units"
)

// sinkHints says what listens where, and how to push into it.
func sinkHints(f sinkFlags, servers openedSinks, at map[string]string) string {
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
		if command := pushInto(f, s.sinkProtocol, at); command != "" {
			fmt.Fprintf(&b, "  %s\n", command)
		}
	}
	if f.takesNoRows() {
		b.WriteString("\nPushes to Databend and Doris take an answer of no rows for a failure: they need --row-bytes, and Doris the exact size.\n")
	}
	if f.options.Password != "" {
		b.WriteString("\nThe password goes with it as TERAPUSH_PASSWORD, and for S3 as AWS_SECRET_ACCESS_KEY.\n")
	}
	b.WriteString("\nThese connections are plain. Every port but raw takes TLS as well")
	if f.cert == "" {
		b.WriteString(", with a certificate made just now, which nobody can verify")
	}
	b.WriteString(".\nCtrl-C ends it.\n")
	return b.String()
}

// takesNoRows reports whether every load is answered with no rows.
func (f *sinkFlags) takesNoRows() bool { return f.options.NoCount && f.rowBytes == 0 }

// pushInto is the command that pushes by a protocol, "" where there is none.
func pushInto(f sinkFlags, p sinkProtocol, at map[string]string) string {
	target := p.target
	for name, address := range at {
		address = reachable(address)
		target = strings.ReplaceAll(target, "{"+name+"}", address)
		target = strings.ReplaceAll(target, "{"+name+":port}", address[strings.LastIndexByte(address, ':')+1:])
	}
	if target == "" || strings.Contains(target, "{") || p.compares && f.takesNoRows() {
		return "" // a push to Doris asks doris-sql first, which may not be open
	}
	environment, payload, proof := "", "", "ack"
	if f.options.NoCount {
		proof = "none"
	}
	switch p.name {
	case "doris": // it has no type for bytes, and pushes else wait until the rows can be read
		payload, proof = " --payload-kind text", "none"
	case "s3":
		environment = "AWS_ACCESS_KEY_ID=sink "
		if f.options.Password == "" {
			environment += "AWS_SECRET_ACCESS_KEY=sink "
		}
	}
	return environment + "terapush push " + quote(target) + payload + " --create never --delivery at-least-once --verify " + proof
}

// reachable is an address to connect to: of a server that listens on all of them it has this machine's name.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort(ownAddresses(host)[0], port)
	}
	return addr
}

// sinkTable shows what came in.
func sinkTable(to io.Writer, f sinkFlags, servers openedSinks) error {
	out := tabwriter.NewWriter(to, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(out, "\n\tconnections\tstatements\trows\tbytes\tGiB/s\t")
	if f.fail > 0 {
		fmt.Fprint(out, "told to fail\t")
	}
	if f.options.CRC {
		fmt.Fprint(out, "CRC-32C\t")
	}
	fmt.Fprintln(out)
	for _, s := range servers {
		took := s.server.Stats()
		perSecond := 0.0
		if busy := s.server.Busy().Seconds(); busy > 0 {
			perSecond = float64(took.Bytes) / busy / (1 << 30)
		}
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%s\t%.2f\t", s.name, took.Connections, took.Statements, took.Rows,
			units.Bytes(took.Bytes), perSecond)
		if f.fail > 0 {
			fmt.Fprintf(out, "%d\t", took.Failed)
		}
		if f.options.CRC {
			fmt.Fprintf(out, "%s\t", took.CRC)
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
}
