package plan

import "github.com/terapush/terapush/pkg/loader"

// What one connection is reckoned to carry, in bits a second, where the link's speed decides how many there are.
const (
	// flowBits is the most that one TCP connection carries on EC2 outside of a cluster placement group, however fast the
	// instance is.
	flowBits = 5_000_000_000
	// connectionBits is what a connection to a database carries. A server has one process or thread for each, whose parser
	// takes from 220 MB/s (MariaDB, LOAD DATA) to 600 MB/s (PostgreSQL, binary COPY), and nothing moves while it commits.
	// So 50 Gbit/s are 40 connections.
	connectionBits = flowBits / 4
	// requestBits is what a connection to an object store carries. Amazon reckons with a request for every 85 to 90 MB/s,
	// 72 of them at 50 Gbit/s; half as many again, since a worker that waits for its answer sends nothing. So 105.
	requestBits = 480_000_000
)

// Bounds of the number of workers that nobody asked for.
const (
	fewest = 4
	// A connection costs a database memory, and PostgreSQL takes a hundred by default. A store does not care: there it is
	// the memory of this machine that bounds them.
	mostConnections, mostRequests = 64, 256
)

// Workers is how many connections load at the same time where the user does not say. It is two a core, 4 to 64: one sends
// while the other waits for its answer. On a link whose speed is known, in bits a second, there are at least as many as it
// takes to fill it; 0 is not known. Memory and the server may lower the number: see Plan.Fit and loader.Caps.MaxInFlight.
func Workers(cores int, linkBits int64, caps loader.Caps) int {
	each, most := int64(connectionBits), int64(mostConnections)
	if caps.StoresObjects() {
		each, most = requestBits, mostRequests
	}
	most = max(most, divideUp(linkBits, flowBits))
	byCores := min(max(2*cores, fewest), mostConnections)
	return max(byCores, int(min(divideUp(linkBits, each), most)))
}
