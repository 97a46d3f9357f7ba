package host

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// tcp checks the route to the target and the kernel's settings for it.
func (e *checks) tcp() []loader.Finding {
	var all []loader.Finding
	if e.want.Target != "" && !isPath(e.want.Target) {
		all = append(all, e.roundTrip())
	}
	return append(all, e.buffers(), e.congestion(), e.afterIdle(), e.probing())
}

func (e *checks) roundTrip() loader.Finding {
	const check = "round trip"
	if e.RoundTrip <= 0 {
		return unknown(check, fmt.Sprintf("to %s: %s", e.want.Target, e.Unmeasured))
	}
	return ok(check, fmt.Sprintf("%s to %s", milliseconds(e.RoundTrip), e.want.Target))
}

// assumedRoundTrip is the round trip between two zones of a region, where none was measured.
const assumedRoundTrip = time.Millisecond

// buffers compares the largest send buffer of a connection with twice its share of the bandwidth-delay product: the
// kernel counts its own overhead into the buffer, and what was sent stays in it for a round trip. wmem_max does not
// matter: it bounds only programs that set SO_SNDBUF, which would switch the kernel's own tuning off. tcp_rmem matters at
// the server.
func (e *checks) buffers() loader.Finding {
	const check = "TCP send buffers"
	limits, read := e.Numbers("net.ipv4.tcp_wmem", 3)
	if !read || limits[2] == 0 {
		return unknown(check, "net.ipv4.tcp_wmem cannot be read")
	}
	trip, how := e.RoundTrip, "at "+milliseconds(e.RoundTrip)
	if trip <= 0 {
		trip, how = assumedRoundTrip, "at an assumed "+milliseconds(assumedRoundTrip)
	}
	connections := max(e.want.Workers, 1)
	need := int64(math.Ceil(2 * float64(e.want.BitsPerSecond) / 8 * trip.Seconds() / float64(connections)))
	found := fmt.Sprintf("up to %s; %s over %d connections %s need %s each",
		size(limits[2]), gbps(e.want.BitsPerSecond), connections, how, size(need))
	if limits[2] >= need {
		return ok(check, found)
	}
	reach := float64(limits[2]) / 2 * float64(connections) / trip.Seconds() * 8
	return warn(check, fmt.Sprintf("%s: they end at %s Gbps", found, figure(reach/1e9)),
		fmt.Sprintf(`sysctl -w net.ipv4.tcp_wmem="%d %d %d"%s`, limits[0], limits[1], roomFor(need), orWorkers(need)))
}

// usualBuffer, 64 MiB, is the least that is recommended, and largestBuffer the most: beyond it more connections are the
// better answer.
const usualBuffer, largestBuffer = 64 << 20, 1 << 30

// roomFor returns a power of two.
func roomFor(need int64) int64 {
	return min(max(int64(1)<<bits.Len64(uint64(need-1)), usualBuffer), largestBuffer)
}

func orWorkers(need int64) string {
	if need > largestBuffer {
		return ", and more --workers"
	}
	return ""
}

// longRoundTrip is the round trip from which on a lost packet or a window that begins small again costs enough to warn
// of: beyond a region.
const longRoundTrip = 5 * time.Millisecond

func (e *checks) congestion() loader.Finding {
	const check = "congestion"
	current := e.Sysctls["net.ipv4.tcp_congestion_control"]
	if current == "" {
		return unknown(check, "net.ipv4.tcp_congestion_control cannot be read")
	}
	found := current
	if qdisc := e.Sysctls["net.core.default_qdisc"]; qdisc != "" {
		found += ", queues " + qdisc
	}
	available := e.Sysctls["net.ipv4.tcp_available_congestion_control"]
	if e.RoundTrip < longRoundTrip || current == "bbr" {
		return ok(check, found)
	}
	fix := "sysctl -w net.ipv4.tcp_congestion_control=bbr"
	if !slices.Contains(strings.Fields(available), "bbr") {
		fix = "modprobe tcp_bbr && " + fix
	}
	return warn(check, fmt.Sprintf("%s: over %s a lost packet halves the rate for long", found, milliseconds(e.RoundTrip)), fix)
}

// afterIdle matters to workers that wait for an answer longer than a retransmission would: their window begins at ten
// packets again, and doubles each round trip.
func (e *checks) afterIdle() loader.Finding {
	const check, name = "slow start", "net.ipv4.tcp_slow_start_after_idle"
	text := e.Sysctls[name]
	switch {
	case text == "0":
		return ok(check, "not after a pause")
	case text == "":
		return unknown(check, name+" cannot be read")
	case e.RoundTrip < longRoundTrip:
		return ok(check, "after every pause, which costs little over so short a way")
	default:
		return warn(check, "after every pause, as between a batch and the next: it takes many round trips of "+milliseconds(e.RoundTrip),
			"sysctl -w "+name+"=0")
	}
}

// probing finds large packets that a router drops without an ICMP message: connections hang after the handshake.
func (e *checks) probing() loader.Finding {
	const check, name, plain = "MTU probing", "net.ipv4.tcp_mtu_probing", 1500
	text := e.Sysctls[name]
	n, seen := e.NIC(e.Out)
	switch {
	case text == "":
		return unknown(check, name+" cannot be read")
	case text != "0":
		return ok(check, "on")
	case seen && n.MTU > plain && e.Out != loopback:
		return warn(check, fmt.Sprintf("off, with an MTU of %d: packets that a router drops without a word hang a connection", n.MTU),
			"sysctl -w "+name+"=1")
	default:
		return ok(check, "off, and not needed for ordinary packets")
	}
}

func milliseconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64) + " ms"
}
