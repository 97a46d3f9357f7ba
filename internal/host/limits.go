package host

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/pkg/loader"
)

// limits is about what bounds the number of connections.
func (e *checks) limits() []loader.Finding {
	return []loader.Finding{e.files(), e.ports(), e.tracking()}
}

// besides are files that a push has open besides its connections: journal, standard streams, the poller, name look-ups.
const besides = 32

// fewest are those without which none begins. Workers that get no file for a connection stop nothing: they try again, and
// the others load meanwhile (8 workers were seen to end a push with 10 files, and none with 8).
const fewest = 9

// each is how many connections a worker may have at once: to a store and to the database, the old one and the new one of
// a retry.
const each = 4

// files compares with the limit in force, which Go has raised to the hard one: only root raises that.
func (e *checks) files() loader.Finding {
	const check, plenty = "open files", 65536
	limit := e.OpenFiles
	if limit <= 0 {
		return unknown(check, "the limit cannot be read")
	}
	fix := fmt.Sprintf("ulimit -n %d, as root, or LimitNOFILE=%d in the unit", plenty, plenty)
	switch {
	case limit < fewest:
		return fail(check, fmt.Sprintf("%s, and a push opens %d before its first connection", humanize.Comma(limit), fewest), fix)
	case limit < int64(e.want.Workers*each+besides):
		return warn(check, fmt.Sprintf("%s are few for %d workers: a worker may have %d connections", humanize.Comma(limit), e.want.Workers, each), fix)
	default:
		return ok(check, humanize.Comma(min(limit, 1<<40)))
	}
}

// ports are those of one address of the target; a connection that was closed keeps its own for a minute. How many addresses
// a run has is not known here, and a Unix socket takes no port, so that this stops no push.
func (e *checks) ports() loader.Finding {
	const check, name = "local ports", "net.ipv4.ip_local_port_range"
	span, read := e.Numbers(name, 2)
	if !read || span[1] < span[0] {
		return unknown(check, name+" cannot be read")
	}
	ports := span[1] - span[0] + 1
	found := fmt.Sprintf("%s, from %d to %d", humanize.Comma(ports), span[0], span[1])
	fix := fmt.Sprintf(`sysctl -w %s="1024 65535"`, name)
	switch {
	case ports < int64(e.want.Workers):
		return warn(check, fmt.Sprintf("%s: fewer than %d workers, which all go to one address unless the target has several", found, e.want.Workers), fix)
	case ports < int64(e.want.Workers*each):
		return warn(check, fmt.Sprintf("%s: few for %d workers, since a closed connection keeps its port for a minute", found, e.want.Workers), fix)
	default:
		return ok(check, found)
	}
}

func (e *checks) tracking() loader.Finding {
	const check, count, limit = "conntrack", "net.netfilter.nf_conntrack_count", "net.netfilter.nf_conntrack_max"
	now, counted := e.Numbers(count, 1)
	most, limited := e.Numbers(limit, 1)
	if !counted || !limited {
		if len(e.Sysctls) == 0 {
			return unknown(check, "/proc/sys cannot be read")
		}
		return ok(check, "connections are not tracked")
	}
	found := fmt.Sprintf("%s of %s tracked connections", humanize.Comma(now[0]), humanize.Comma(most[0]))
	left, fix := most[0]-now[0], fmt.Sprintf("sysctl -w %s=%d", limit, max(2*most[0], 262144))
	switch {
	case most[0] == 0: // 0 is no limit
		return ok(check, humanize.Comma(now[0])+" tracked connections, without a limit")
	case left < int64(e.want.Workers):
		return warn(check, fmt.Sprintf("%s: no room for %d workers, unless old ones are forgotten in time", found, e.want.Workers), fix)
	case left < int64(e.want.Workers*each):
		return warn(check, fmt.Sprintf("%s: little room for %d workers", found, e.want.Workers), fix)
	default:
		return ok(check, found)
	}
}
