package host

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// bytesPerCore is what a core sends in a second, with making rows and TLS: the methods take 0.25 to 0.8 s of CPU a
// gigabyte, and TLS 0.4 s. It is a rule of thumb; calibrate measures.
const bytesPerCore = 1e9

func (e *checks) cores() loader.Finding {
	c := e.Cores
	if c.Usable <= 0 {
		return unknown("cannot be read")
	}
	found := english.Plural(c.Usable, "core", "")
	switch {
	case c.Quota > 0:
		found = fmt.Sprintf("%d of %d, by the cgroup's quota of %s", c.Usable, max(c.Machine, c.Usable), figure(c.Quota))
	case c.Machine > c.Usable:
		found = fmt.Sprintf("%d of %d, by GOMAXPROCS or CPU affinity", c.Usable, c.Machine)
	}
	need := int(math.Ceil(float64(e.want.BitsPerSecond) / 8 / bytesPerCore))
	if c.Usable >= need {
		return ok(found)
	}
	fix := "a machine with more cores; terapush calibrate measures what this one can do"
	switch {
	case c.Quota > 0:
		fix = moreQuota(need)
	case c.Machine > c.Usable:
		fix = "unset GOMAXPROCS; taskset --all-tasks --cpu-list 0-$(($(nproc --all)-1)) terapush …"
	}
	return warn(fmt.Sprintf("%s; %s take about %d, one for each GB/s with TLS",
		found, gbps(e.want.BitsPerSecond), need), fix)
}

func moreQuota(cores int) string {
	return fmt.Sprintf("docker update --cpus %d CONTAINER, or resources.limits.cpu in Kubernetes", cores)
}

func (e *checks) memory() loader.Finding {
	found := fmt.Sprintf("%s, of which buffers may take %s", units.Size(e.Memory), units.Size(e.want.Memory))
	switch {
	case e.Memory <= 0:
		return unknown("cannot be read")
	case e.want.BatchBytes > e.Memory:
		return fail(fmt.Sprintf("%s do not hold one batch of %s", units.Size(e.Memory), units.Size(e.want.BatchBytes)),
			"--batch-bytes "+flagSize(e.Memory/16))
	case e.want.Memory <= 0:
		return ok(units.Size(e.Memory))
	case e.want.Memory > e.Memory/4*3:
		return warn(found+": the kernel kills a process that takes too much", "--memory "+flagSize(e.Memory/4))
	}
	return ok(found)
}

// otherFiles is how many files a push has open beside its connections: journal, standard streams, the poller, name
// look-ups.
const otherFiles = 32

// fewestFiles is how many a push needs to start. Workers without a file for their connection retry, and the others load
// meanwhile: 8 workers completed a push with 10 files, and none with 8.
const fewestFiles = 9

// connectionsEach is how many connections a worker may have at once: to a store and to the database, the old one and
// the new one of a retry.
const connectionsEach = 4

// files checks the limit that Go has raised to the hard one, which only root raises.
func (e *checks) files() loader.Finding {
	const plenty = 65536
	fix := fmt.Sprintf("ulimit -n %d, as root, or LimitNOFILE=%d in the unit", plenty, plenty)
	found := units.Count(e.OpenFiles)
	switch {
	case e.OpenFiles <= 0:
		return unknown("the limit cannot be read")
	case e.OpenFiles < fewestFiles:
		return fail(fmt.Sprintf("%s, and a push opens %d before its first connection", found, fewestFiles), fix)
	case e.OpenFiles < int64(e.want.Workers*connectionsEach+otherFiles):
		return warn(fmt.Sprintf("%s are few for %d workers of up to %d connections",
			found, e.want.Workers, connectionsEach), fix)
	}
	return ok(found)
}

// ports counts those for one address of the target; a closed connection keeps its port for a minute. A run may have
// several addresses, or a Unix socket without ports, so this is never a failure.
func (e *checks) ports() loader.Finding {
	const name = "net.ipv4.ip_local_port_range"
	span, read := e.Numbers(name, 2)
	if !read || span[1] < span[0] {
		return unknown(name + " cannot be read")
	}
	ports := span[1] - span[0] + 1
	found := fmt.Sprintf("%s, from %d to %d", units.Count(ports), span[0], span[1])
	if ports < int64(e.want.Workers*connectionsEach) {
		return warn(fmt.Sprintf("%s: few for %d workers, since a closed connection keeps its port for a minute",
			found, e.want.Workers), fmt.Sprintf(`sysctl -w %s="1024 65535"`, name))
	}
	return ok(found)
}

func (e *checks) tracking() loader.Finding {
	const count, limit = "net.netfilter.nf_conntrack_count", "net.netfilter.nf_conntrack_max"
	used, counted := e.Numbers(count, 1)
	most, limited := e.Numbers(limit, 1)
	switch {
	case len(e.Sysctls) == 0:
		return unknown("/proc/sys cannot be read")
	case !counted || !limited:
		return ok("connections are not tracked")
	case most[0] == 0: // no limit
		return ok(units.Count(used[0]) + " tracked connections, without a limit")
	}
	found := fmt.Sprintf("%s of %s tracked connections", units.Count(used[0]), units.Count(most[0]))
	if most[0]-used[0] < int64(e.want.Workers*connectionsEach) {
		return warn(fmt.Sprintf("%s: little room for %d workers", found, e.want.Workers),
			fmt.Sprintf("sysctl -w %s=%d", limit, max(2*most[0], 262144)))
	}
	return ok(found)
}
