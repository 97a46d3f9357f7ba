package host

import (
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/pkg/loader"
)

// card checks the network card that the rows leave by.
func (e *checks) card() []loader.Finding {
	const check = "NIC"
	if e.Out == loopback {
		return []loader.Finding{ok(check, "none: the target is on this machine")}
	}
	if e.Out == "" {
		return []loader.Finding{unknown(check, "no interface to be seen that packets would leave by: it is hidden, or there is no route")}
	}
	n, seen := e.NIC(e.Out)
	if !seen {
		return []loader.Finding{unknown(check, e.Out+", of which /sys has nothing")}
	}
	return []loader.Finding{e.speed(n), e.mtu(n), e.queues(n)}
}

// speed ignores the speed of interfaces without a device, such as a container's end of a veth pair, which reports 10 Gbps
// whatever card is behind it.
func (e *checks) speed(n NIC) loader.Finding {
	const check = "NIC speed"
	switch want := e.want.BitsPerSecond; {
	case n.Driver == "" && n.BitsPerSecond > 0:
		return unknown(check, fmt.Sprintf("%s is virtual and reports %s: what counts is the card behind it", n.Name, gbps(n.BitsPerSecond)))
	case n.Driver == "":
		return unknown(check, n.Name+" is virtual: what counts is the card behind it")
	case n.BitsPerSecond == 0:
		return unknown(check, fmt.Sprintf("%s, driver %s, does not report its speed", n.Name, n.Driver))
	case n.BitsPerSecond < want:
		return warn(check, fmt.Sprintf("%s, %s, driver %s: less than %s", n.Name, gbps(n.BitsPerSecond), n.Driver, gbps(want)),
			fmt.Sprintf("--gbps %s, or a machine with a faster card", figure(float64(n.BitsPerSecond)/1e9)))
	default:
		return ok(check, fmt.Sprintf("%s, %s, driver %s", n.Name, gbps(n.BitsPerSecond), n.Driver))
	}
}

// fastRate is the rate in bits a second from which on packets and queues matter: 860,000 packets a second of 1,448 bytes.
const fastRate = 10e9

// headerBytes is how many bytes of an MTU IP, TCP and its timestamps take.
const headerBytes = 52

func (e *checks) mtu(n NIC) loader.Finding {
	const check, jumbo = "MTU", 9000
	if n.MTU <= headerBytes {
		return unknown(check, n.Name+" does not report it")
	}
	if n.MTU >= jumbo || e.want.BitsPerSecond < fastRate && !e.EC2.Here {
		return ok(check, fmt.Sprintf("%d", n.MTU))
	}
	packets := float64(e.want.BitsPerSecond) / 8 / float64(n.MTU-headerBytes)
	found := fmt.Sprintf("%d: %s are %s million packets a second", n.MTU, gbps(e.want.BitsPerSecond), figure(packets/1e6))
	if e.EC2.Here {
		return warn(check, found, fmt.Sprintf("ip link set dev %s mtu 9001", n.Name))
	}
	return warn(check, found, fmt.Sprintf("ip link set dev %s mtu 9000, where every switch on the way takes it", n.Name))
}

// enoughQueues is how many queues carry 50 Gbps; each has its interrupts on one core.
const enoughQueues = 8

func (e *checks) queues(n NIC) loader.Finding {
	const check = "NIC queues"
	if n.TxQueues == 0 {
		return unknown(check, n.Name+" does not report them")
	}
	found := fmt.Sprintf("%d to send, for %s", n.TxQueues, english.Plural(e.Cores.Usable, "core", ""))
	need := min(e.Cores.Usable, enoughQueues)
	if n.TxQueues >= need || e.want.BitsPerSecond < fastRate {
		return ok(check, found)
	}
	found += ": their interrupts crowd on few cores"
	if n.MaxTxQueues > n.TxQueues {
		return warn(check, found, fmt.Sprintf("ethtool -L %s combined %d", n.Name, min(n.MaxTxQueues, need)))
	}
	return warn(check, found+", and the driver has no more", "a machine whose card has more queues")
}
