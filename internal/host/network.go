package host

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// outNIC returns the network card that the rows leave by.
func (e *checks) outNIC() (n NIC, ok bool) {
	if e.Out == loopback {
		return n, false
	}
	return e.NIC(e.Out)
}

// card explains why there are no checks of a card.
func (e *checks) card() (f loader.Finding) {
	_, seen := e.outNIC()
	switch {
	case seen:
		return f
	case e.Out == loopback:
		return ok("none: the target is on this machine")
	case e.Out == "":
		return unknown("the interface of the route is hidden, or there is no route")
	}
	return unknown(e.Out + ", which is not in /sys")
}

// speed ignores what virtual interfaces report: a container's end of a veth pair always reports 10 Gbps.
func (e *checks) speed() (f loader.Finding) {
	n, seen := e.outNIC()
	found := fmt.Sprintf("%s, %s, driver %s", n.Name, gbps(n.BitsPerSecond), n.Driver)
	switch want := e.want.BitsPerSecond; {
	case !seen:
		return f
	case n.Driver == "":
		return unknown(n.Name + " is virtual: what counts is the card behind it")
	case n.BitsPerSecond == 0:
		return unknown(fmt.Sprintf("%s, driver %s, does not report its speed", n.Name, n.Driver))
	case n.BitsPerSecond < want:
		return warn(found+": less than "+gbps(want),
			fmt.Sprintf("--gbps %s, or a machine with a faster card", figure(float64(n.BitsPerSecond)/1e9)))
	}
	return ok(found)
}

// fastRate is the rate in bits a second above which packets and queues matter: 860,000 packets a second of 1,448 bytes.
const fastRate = 10e9

// headerBytes is how many bytes of an MTU IP, TCP and its timestamps take.
const headerBytes = 52

func (e *checks) mtu() (f loader.Finding) {
	const jumbo = 9000
	n, seen := e.outNIC()
	switch {
	case !seen:
		return f
	case n.MTU <= headerBytes:
		return unknown(n.Name + " does not report it")
	case n.MTU >= jumbo || e.want.BitsPerSecond < fastRate && !e.EC2.Here:
		return ok(fmt.Sprint(n.MTU))
	}
	fix := fmt.Sprintf("ip link set dev %s mtu 9000, if every switch on the way supports it", n.Name)
	if e.EC2.Here {
		fix = fmt.Sprintf("ip link set dev %s mtu 9001", n.Name)
	}
	packets := float64(e.want.BitsPerSecond) / 8 / float64(n.MTU-headerBytes)
	return warn(fmt.Sprintf("%d: %s are %s million packets a second",
		n.MTU, gbps(e.want.BitsPerSecond), figure(packets/1e6)), fix)
}

// enoughQueues is how many queues carry 50 Gbps; each has its interrupts on one core.
const enoughQueues = 8

func (e *checks) queues() (f loader.Finding) {
	n, seen := e.outNIC()
	found := fmt.Sprintf("%d to send, for %s", n.TxQueues, english.Plural(e.Cores.Usable, "core", ""))
	need := min(e.Cores.Usable, enoughQueues)
	switch {
	case !seen:
		return f
	case n.TxQueues == 0:
		return unknown(n.Name + " does not report them")
	case n.TxQueues >= need || e.want.BitsPerSecond < fastRate:
		return ok(found)
	}
	return warn(found+": few cores handle their interrupts",
		fmt.Sprintf("ethtool -L %s combined %d, if the driver has so many; else a card with more queues", n.Name, need))
}

func (e *checks) instance() (f loader.Finding) {
	i := e.EC2
	if !i.Here {
		return f
	}
	if i.Unknown != "" {
		f = unknown(i.Unknown)
		f.Fix = fmt.Sprintf("aws ec2 modify-instance-metadata-options --instance-id %s --http-endpoint enabled "+
			"--http-put-response-hop-limit 2", cmp.Or(i.ID, "INSTANCE"))
		return f
	}
	found := i.Type
	if i.AZID != "" {
		found += " in " + i.AZID
	}
	if i.PlacementGroup != "" {
		found += ", placement group " + i.PlacementGroup
	}
	bandwidth, known := i.Bandwidth()
	switch {
	case !known:
		return ok(found + "; its lasting bandwidth is not in terapush's table")
	case bandwidth < e.want.BitsPerSecond:
		return warn(fmt.Sprintf("%s, %s: less than %s", found, gbps(bandwidth), gbps(e.want.BitsPerSecond)),
			fmt.Sprintf("--gbps %s, or a larger instance type", figure(float64(bandwidth)/1e9)))
	}
	return ok(found + ", " + gbps(bandwidth))
}

// perFlow is what one connection carries between instances, in bits a second: ec2-instance-network-bandwidth in
// Amazon's documentation. In a cluster placement group or with ENA Express it is more, but whether the target is in the
// group cannot be seen from here.
const perFlow = 5e9

func (e *checks) flows() (f loader.Finding) {
	if !e.EC2.Here || e.Out == loopback {
		return f
	}
	need := int(math.Ceil(float64(e.want.BitsPerSecond) / perFlow))
	found := fmt.Sprintf("%d of up to 5 Gbps each", e.want.Workers)
	if e.want.Workers < need {
		return warn(fmt.Sprintf("%s; %s take %d, and some more since they do not spread evenly",
			found, gbps(e.want.BitsPerSecond), need), fmt.Sprintf("--workers %d", 3*need))
	}
	return ok(found)
}

// allowances checks the ENA driver's counters of what the instance held back.
func (e *checks) allowances() (f loader.Finding) {
	if n, seen := e.NIC(e.Out); !seen || n.Driver != ena {
		return f
	}
	counters, read := e.Allowances[e.Out]
	if !read {
		return unknown("the driver's counters cannot be read")
	}
	var exceeded, fixes []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		if n := counters[name]; n > 0 {
			exceeded = append(exceeded, fmt.Sprintf("%s %s", name, units.Count(n)))
			fixes = append(fixes, e.allowanceFix(name))
		}
	}
	if exceeded == nil {
		return ok("never exceeded since the start of the machine")
	}
	return warn("since the start of the machine, packets waited or were dropped: "+strings.Join(exceeded, ", "),
		strings.Join(slices.Compact(fixes), "; "))
}

func (e *checks) allowanceFix(counter string) string {
	switch kind, _, _ := strings.Cut(counter, "_"); kind {
	case "pps":
		return fmt.Sprintf("ip link set dev %s mtu 9001, for fewer packets", e.Out)
	case "conntrack":
		return "security group rules that allow everything in and out are not tracked"
	case "linklocal":
		return "cache DNS on the machine: systemctl enable --now systemd-resolved"
	}
	return "an instance type with more bandwidth"
}

func (e *checks) roundTrip() (f loader.Finding) {
	switch {
	case e.want.Target == "" || isPath(e.want.Target):
		return f
	case e.RoundTrip <= 0:
		return unknown(fmt.Sprintf("to %s: %s", e.want.Target, e.Unmeasured))
	}
	return ok(fmt.Sprintf("%s to %s", milliseconds(e.RoundTrip), e.want.Target))
}

// assumedRoundTrip is the round trip between two zones of a region, if none was measured.
const assumedRoundTrip = time.Millisecond

// usualBuffer is the smallest buffer that is recommended, and largestBuffer the largest: beyond it more connections are
// the better answer.
const usualBuffer, largestBuffer = 64 << 20, 1 << 30

// buffers compares the largest send buffer of a connection with twice its share of the bandwidth-delay product: the
// kernel counts its own overhead into the buffer, and what was sent stays in it for a round trip. wmem_max only bounds
// programs that set SO_SNDBUF, and tcp_rmem matters at the server.
func (e *checks) buffers() loader.Finding {
	limits, read := e.Numbers("net.ipv4.tcp_wmem", 3)
	if !read || limits[2] == 0 {
		return unknown("net.ipv4.tcp_wmem cannot be read")
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
		return ok(found)
	}
	reach := float64(limits[2]) / 2 * float64(connections) / trip.Seconds() * 8
	most := min(max(1<<bits.Len64(uint64(need-1)), usualBuffer), largestBuffer)
	fix := fmt.Sprintf(`sysctl -w net.ipv4.tcp_wmem="%d %d %d"`, limits[0], limits[1], most)
	if need > largestBuffer {
		fix += ", and more --workers"
	}
	return warn(fmt.Sprintf("%s: they end at %s Gbps", found, figure(reach/1e9)), fix)
}

// longRoundTrip is the round trip above which a lost packet, or a window that begins small again, costs much: beyond a
// region.
const longRoundTrip = 5 * time.Millisecond

func (e *checks) congestion() loader.Finding {
	const name = "net.ipv4.tcp_congestion_control"
	current := e.Sysctls[name]
	if current == "" {
		return unknown(name + " cannot be read")
	}
	found := current
	if qdisc := e.Sysctls["net.core.default_qdisc"]; qdisc != "" {
		found += ", queues " + qdisc
	}
	if e.RoundTrip < longRoundTrip || current == "bbr" {
		return ok(found)
	}
	fix := "sysctl -w " + name + "=bbr"
	if !slices.Contains(strings.Fields(e.Sysctls["net.ipv4.tcp_available_congestion_control"]), "bbr") {
		fix = "modprobe tcp_bbr && " + fix
	}
	return warn(fmt.Sprintf("%s: over %s a lost packet halves the rate for long", found, milliseconds(e.RoundTrip)), fix)
}

// slowStart matters to workers that wait for an answer longer than a retransmission would: their window begins at ten
// packets again, and doubles each round trip.
func (e *checks) slowStart() loader.Finding {
	const name = "net.ipv4.tcp_slow_start_after_idle"
	switch text := e.Sysctls[name]; {
	case text == "":
		return unknown(name + " cannot be read")
	case text == "0":
		return ok("not after a pause")
	case e.RoundTrip < longRoundTrip:
		return ok("after every pause, which costs little over so short a way")
	}
	return warn("after every pause, as between two batches: it takes many round trips of "+milliseconds(e.RoundTrip),
		"sysctl -w "+name+"=0")
}
