package sink

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Sleeps that end late cost nothing of the rate, and idle time is not saved up.
func TestPaceKeepsItsRate(t *testing.T) {
	const late = time.Millisecond
	start := time.Unix(1000, 0)
	for name, read := range map[string]int{"large reads": 20_000, "records of TLS": 800} {
		t.Run(name, func(t *testing.T) {
			p := pace{rate: 1_000_000}
			now, sum := start, 0
			for now.Before(start.Add(time.Second)) {
				if p.free.After(now) {
					now = p.free.Add(late)
				}
				p.took(read, now)
				sum += read
			}
			require.InDelta(t, 1_000_000, sum, 1_000_000*arrears.Seconds()+20_000)

			now = now.Add(time.Minute)
			sum = 0
			for p.took(read, now); !p.free.After(now); p.took(read, now) {
				sum += read
			}
			require.LessOrEqual(t, sum, int(1_000_000*arrears.Seconds()))
		})
	}
}
