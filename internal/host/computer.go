package host

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// computer checks cores, memory and clocks.
func (e *checks) computer() []loader.Finding {
	return []loader.Finding{e.cores(), e.throttling(), e.memory(), e.governor(), e.clock()}
}

// bytesPerCore is what a core sends in a second, with the making of rows and TLS: the methods take 0.25 to 0.8 s of CPU a
// gigabyte, and TLS 0.4 s. It is a rule of thumb; calibrate measures.
const bytesPerCore = 1e9

func (e *checks) cores() loader.Finding {
	const check = "cores"
	c := e.Cores
	if c.Usable <= 0 {
		return unknown(check, "cannot be read")
	}
	found := english.Plural(c.Usable, "core", "")
	switch {
	case c.Quota > 0:
		found = fmt.Sprintf("%d of %d, by the cgroup's quota of %s", c.Usable, max(c.Machine, c.Usable), figure(c.Quota))
	case c.Machine > c.Usable:
		found = fmt.Sprintf("%d of %d, by GOMAXPROCS or CPU affinity", c.Usable, c.Machine)
	}
	if need := int(math.Ceil(float64(e.want.BitsPerSecond) / 8 / bytesPerCore)); c.Usable < need {
		return warn(check, fmt.Sprintf("%s; %s take about %d, one for each GB/s with TLS", found, gbps(e.want.BitsPerSecond), need),
			moreCores(c.Quota > 0, c.Machine > c.Usable, need))
	}
	return ok(check, found)
}

func moreCores(quota, held bool, need int) string {
	switch {
	case quota:
		return fmt.Sprintf("docker update --cpus %d CONTAINER, or resources.limits.cpu in Kubernetes", need)
	case held:
		return "unset GOMAXPROCS; taskset --all-tasks --cpu-list 0-$(($(nproc --all)-1)) terapush …"
	default:
		return "a machine with more cores; terapush calibrate measures what this one can do"
	}
}

// throttling warns from one period of a hundred on.
func (e *checks) throttling() loader.Finding {
	const check = "CPU throttling"
	c := e.Cores
	switch {
	case c.Periods == 0 && c.Quota > 0:
		return unknown(check, "the cgroup's cpu.stat cannot be read")
	case c.Periods == 0 && c.Machine == 0:
		return unknown(check, "cannot be read")
	case c.Periods == 0:
		return ok(check, "no quota of a cgroup")
	}
	share := fmt.Sprintf("the cgroup's quota was used up in %s of %s periods", units.Count(c.Throttled), units.Count(c.Periods))
	if c.Throttled*100 >= c.Periods && c.Throttled > 0 {
		return warn(check, share+": all connections stood still until each ended", moreCores(true, true, max(c.Machine, 1)))
	}
	return ok(check, share)
}

func (e *checks) memory() loader.Finding {
	const check = "memory"
	if e.Memory <= 0 {
		return unknown(check, "cannot be read")
	}
	found := fmt.Sprintf("%s, of which buffers may take %s", size(e.Memory), size(e.want.Memory))
	switch {
	case e.want.BatchBytes > e.Memory:
		return fail(check, fmt.Sprintf("%s do not hold one batch of %s", size(e.Memory), size(e.want.BatchBytes)),
			"--batch-bytes "+flagSize(e.Memory/16))
	case e.want.Memory <= 0:
		return ok(check, size(e.Memory))
	case e.want.Memory > e.Memory/4*3:
		return warn(check, found+": the kernel ends a process that takes more than there is", "--memory "+flagSize(e.Memory/4))
	default:
		return ok(check, found)
	}
}

func (e *checks) governor() loader.Finding {
	const check = "CPU governor"
	if len(e.Governors) == 0 {
		return unknown(check, "no frequency is set here: the hypervisor decides, or the folder is hidden")
	}
	found := strings.Join(e.Governors, ", ")
	if slices.Contains(e.Governors, "powersave") || slices.Contains(e.Governors, "conservative") {
		return warn(check, found+": cores may stay below their frequency under load", "cpupower frequency-set -g performance")
	}
	return ok(check, found)
}

// clock warns of clocks that are read by a call into the hypervisor or a slow device, microseconds each: a push reads the
// clock for every write.
func (e *checks) clock() loader.Finding {
	const check = "clock source"
	switch e.ClockSource {
	case "":
		return unknown(check, "cannot be read")
	case "xen", "acpi_pm", "hpet", "jiffies", "refined-jiffies":
		return warn(check, e.ClockSource+": to look at the clock takes microseconds",
			"echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource")
	default:
		return ok(check, e.ClockSource)
	}
}

// gbps formats bits a second in the unit of network cards.
func gbps(bits int64) string { return figure(float64(bits)/1e9) + " Gbps" }

// figure formats a number with at most two digits behind the point and no trailing zeros.
func figure(n float64) string { return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64) }

func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// flagSize formats a size as flags take it, in whole MiB.
func flagSize(n int64) string { return strconv.FormatInt(max(n>>20, 1), 10) + "MiB" }
