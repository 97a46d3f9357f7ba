package host

import (
	_ "embed" // the table
	"strconv"
	"strings"
)

// table is the bandwidth of instance types that are made for the network, in Gbps: the figures of the pages on network
// performance in Amazon's documentation of EC2, as of August 2026. It has no type whose figure reads "up to": these hold
// it for minutes, until their credits are used up.
//
//go:embed bandwidth.csv
var table string

// Bandwidth is what an instance type may send for as long as it wants, in bits a second; as much again may come in. ok is
// false for types that the table does not have, which says nothing about them.
func Bandwidth(instanceType string) (bits int64, ok bool) {
	for line := range strings.Lines(table) {
		name, gbps, _ := strings.Cut(strings.TrimSpace(line), ",")
		if name != instanceType {
			continue
		}
		n, err := strconv.ParseFloat(gbps, 64)
		return int64(n * 1e9), err == nil
	}
	return 0, false
}
