package host

import "github.com/safchain/ethtool"

func native() drivers { return drivers{statistics, channels} }

// statistics returns nil where there are none, or where a sandbox forbids the call.
func statistics(nic string) map[string]uint64 {
	counters, err := ethtool.Stats(nic)
	if err != nil {
		return nil
	}
	return counters
}

func channels(nic string) int {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return 0
	}
	defer e.Close()
	most, err := e.GetChannels(nic)
	if err != nil {
		return 0
	}
	return int(max(most.MaxCombined, most.MaxTx))
}
