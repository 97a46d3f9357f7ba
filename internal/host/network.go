package host

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// speed ignores what virtual interfaces report: a container's end of a veth pair always reports 10 Gbps.
func (e *checks) speed() loader.Finding {
	n, seen := e.NIC(e.Out)
	found := fmt.Sprintf("%s, %s, driver %s", n.Name, gbps(n.BitsPerSecond), n.Driver)
	switch want := e.want.BitsPerSecond; {
	case e.Out == loopback:
		return ok("none: the target is on this machine")
	case e.Out == "":
		return unknown("the interface of the route is hidden, or there is no route")
	case !seen:
		return unknown(e.Out + ", which is not in /sys")
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
		units.Size(limits[2]), gbps(e.want.BitsPerSecond), connections, how, units.Size(need))
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
