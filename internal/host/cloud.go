package host

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// cloud checks an instance of Amazon EC2; elsewhere it returns nothing.
func (e *checks) cloud() []loader.Finding {
	var all []loader.Finding
	if e.EC2.Here {
		all = append(all, e.instance())
	}
	if e.EC2.Here && e.Out != loopback {
		all = append(all, e.flows())
		if n, seen := e.NIC(e.Out); seen && n.Driver != "" && n.Driver != "ena" && n.Driver != "ixgbevf" {
			all = append(all, warn("ENA", fmt.Sprintf("%s has driver %s: enhanced networking is off", n.Name, n.Driver),
				fmt.Sprintf("aws ec2 modify-instance-attribute --instance-id %s --ena-support, while it is stopped", e.instanceID())))
		}
	}
	if n, seen := e.NIC(e.Out); seen && n.Driver == "ena" {
		all = append(all, e.allowances())
	}
	return all
}

func (e *checks) instanceID() string { return cmp.Or(e.EC2.ID, "INSTANCE") }

func (e *checks) instance() loader.Finding {
	const check = "EC2 instance"
	i := e.EC2
	if i.Unknown != "" {
		f := unknown(check, i.Unknown)
		f.Fix = fmt.Sprintf("aws ec2 modify-instance-metadata-options --instance-id %s --http-endpoint enabled --http-put-response-hop-limit 2",
			e.instanceID())
		return f
	}
	found := i.Type
	if i.AZ != "" {
		found += fmt.Sprintf(" in %s (%s)", i.AZ, cmp.Or(i.AZID, "no zone id"))
	}
	if i.PlacementGroup != "" {
		found += ", placement group " + i.PlacementGroup
	}
	bits, known := i.Bandwidth()
	switch {
	case !known:
		return ok(check, found+"; its lasting bandwidth is not in terapush's table")
	case bits < e.want.BitsPerSecond:
		return warn(check, fmt.Sprintf("%s, %s: less than %s", found, gbps(bits), gbps(e.want.BitsPerSecond)),
			fmt.Sprintf("--gbps %s, or a larger instance type", figure(float64(bits)/1e9)))
	default:
		return ok(check, found+", "+gbps(bits))
	}
}

// perFlow is what a flow, one connection, carries between instances, whatever their bandwidth, in bits a second:
// ec2-instance-network-bandwidth in Amazon's documentation. Inside a cluster placement group it is 10 Gbps, but whether
// the target is in the same one, or uses ENA Express, cannot be seen from here.
const perFlow = 5e9

func (e *checks) flows() loader.Finding {
	const check = "connections"
	need := int((e.want.BitsPerSecond + perFlow - 1) / perFlow)
	found := fmt.Sprintf("%d of up to 5 Gbps each", e.want.Workers)
	if e.want.Workers < need {
		return warn(check, fmt.Sprintf("%s; %s take %d, and some more since they do not spread evenly", found, gbps(e.want.BitsPerSecond), need),
			fmt.Sprintf("--workers %d", 3*need))
	}
	return ok(check, found)
}

func (e *checks) allowances() loader.Finding {
	const check = "ENA allowances"
	counters, read := e.Allowances[e.Out]
	if !read {
		return unknown(check, "the driver's counters cannot be read")
	}
	var exceeded, fixes []string
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		if n := counters[name]; n > 0 {
			exceeded = append(exceeded, fmt.Sprintf("%s %s", name, units.Count(n)))
			fixes = append(fixes, e.allowanceFix(name))
		}
	}
	if len(exceeded) == 0 {
		return ok(check, "never exceeded since the start of the machine")
	}
	return warn(check, "since the start of the machine, packets waited or were dropped: "+strings.Join(exceeded, ", "),
		strings.Join(slices.Compact(fixes), "; "))
}

func (e *checks) allowanceFix(counter string) string {
	switch {
	case strings.HasPrefix(counter, "pps_"):
		return fmt.Sprintf("ip link set dev %s mtu 9001, for fewer packets", e.Out)
	case strings.HasPrefix(counter, "conntrack_"):
		return "security group rules that allow everything in and out are not tracked"
	case strings.HasPrefix(counter, "linklocal_"):
		return "cache DNS on the machine: systemctl enable --now systemd-resolved"
	default:
		return "an instance type with more bandwidth"
	}
}
