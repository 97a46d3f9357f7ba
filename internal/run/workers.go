package run

import (
	"fmt"

	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/loader"
)

// Estimated throughput of one connection, in bits a second.
const (
	// flowBits is the most of one TCP connection on EC2 outside of a cluster placement group.
	flowBits = 5_000_000_000
	// connectionBits is that of a connection to a database. The server's process or thread for it parses 220 MB/s
	// (MariaDB, LOAD DATA) to 600 MB/s (PostgreSQL, binary COPY), and is idle while it commits. So 50 Gbit/s take 40
	// connections.
	connectionBits = flowBits / 4
	// requestBits is that of a connection to an object store. Amazon expects a request for every 85 to 90 MB/s, 72 of
	// them at 50 Gbit/s. 105 allow for workers that wait for their answer.
	requestBits = 480_000_000
)

// Bounds of the default number of workers. A connection costs a database memory, and PostgreSQL allows a hundred by
// default. For a store only the memory of this machine counts.
const fewest, mostConnections, mostRequests = 4, 64, 256

// Connections returns how many workers a process wants, before memory and the number of batches reduce them: those that
// the user asks for, or else two a core, 4 to 64, so that one sends while the other waits for its answer, and at least
// as many as fill the link. The server's own limit holds for both; a warning says so.
func (r Resources) Connections(caps loader.Caps) (workers int, warnings []string) {
	workers = r.Workers
	if workers == 0 {
		workers = defaultWorkers(r.Cores, r.LinkBits, caps)
	}
	most := caps.MaxInFlight
	if most <= 0 || workers <= most || caps.Staged { // a staged method's workers run no loads
		return workers, nil
	}
	return most, []string{fmt.Sprintf("%d workers are lowered to %d, the number of loads that the server runs at a time: "+
		"more would only wait in its queue", workers, most)}
}

func defaultWorkers(cores int, linkBits int64, caps loader.Caps) int {
	each, most := int64(connectionBits), int64(mostConnections)
	if caps.StoresObjects() {
		each, most = requestBits, mostRequests
	}
	most = max(most, source.DivideUp(linkBits, flowBits))
	byCores := min(max(2*cores, fewest), mostConnections)
	return max(byCores, int(min(source.DivideUp(linkBits, each), most)))
}
