package host

import (
	"fmt"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// limits checks what bounds the number of connections.
func (e *checks) limits() []loader.Finding {
	return []loader.Finding{e.files(), e.ports(), e.tracking()}
}

// otherFiles is how many files a push has open besides its connections: journal, standard streams, the poller, name
// look-ups.
const otherFiles = 32

// fewestFiles is how many a push needs to begin. Workers that get no file for a connection stop nothing: they retry,
// and the others load meanwhile (8 workers were seen to complete a push with 10 files, and none with 8).
const fewestFiles = 9

// connectionsEach is how many connections a worker may have at once: to a store and to the database, the old one and
// the new one of a retry.
const connectionsEach = 4

// files compares with the limit in force, which Go has raised to the hard one; only root raises that.
func (e *checks) files() loader.Finding {
	const check, plenty = "open files", 65536
	limit := e.OpenFiles
	if limit <= 0 {
		return unknown(check, "the limit cannot be read")
	}
	fix := fmt.Sprintf("ulimit -n %d, as root, or LimitNOFILE=%d in the unit", plenty, plenty)
	switch {
	case limit < fewestFiles:
		return fail(check, fmt.Sprintf("%s, and a push opens %d before its first connection", units.Count(limit), fewestFiles), fix)
	case limit < int64(e.want.Workers*connectionsEach+otherFiles):
		return warn(check, fmt.Sprintf("%s are few for %d workers: a worker may have %d connections", units.Count(limit), e.want.Workers, connectionsEach), fix)
	default:
		return ok(check, units.Count(min(limit, 1<<40)))
	}
}

// ports counts those for one address of the target; a closed connection keeps its port for a minute. How many addresses a
// run has is not known here, and a Unix socket takes no port, so that this stops no push.
func (e *checks) ports() loader.Finding {
	const check, name = "local ports", "net.ipv4.ip_local_port_range"
	span, read := e.Numbers(name, 2)
	if !read || span[1] < span[0] {
		return unknown(check, name+" cannot be read")
	}
	ports := span[1] - span[0] + 1
	found := fmt.Sprintf("%s, from %d to %d", units.Count(ports), span[0], span[1])
	fix := fmt.Sprintf(`sysctl -w %s="1024 65535"`, name)
	switch {
	case ports < int64(e.want.Workers):
		return warn(check, fmt.Sprintf("%s: fewer than %d workers, which all go to one address unless the target has several", found, e.want.Workers), fix)
	case ports < int64(e.want.Workers*connectionsEach):
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
	found := fmt.Sprintf("%s of %s tracked connections", units.Count(now[0]), units.Count(most[0]))
	left, fix := most[0]-now[0], fmt.Sprintf("sysctl -w %s=%d", limit, max(2*most[0], 262144))
	switch {
	case most[0] == 0: // 0 is no limit
		return ok(check, units.Count(now[0])+" tracked connections, without a limit")
	case left < int64(e.want.Workers):
		return warn(check, fmt.Sprintf("%s: no room for %d workers, unless old ones are forgotten in time", found, e.want.Workers), fix)
	case left < int64(e.want.Workers*connectionsEach):
		return warn(check, fmt.Sprintf("%s: little room for %d workers", found, e.want.Workers), fix)
	default:
		return ok(check, found)
	}
}
