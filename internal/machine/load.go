package machine

// Load is what the machine has done since it was started: two of them tell what it did in between. What cannot be read
// is empty.
type Load struct {
	Cores []float64 // seconds that each core was busy, those of other processes, interrupts and the hypervisor included
	NICs  []Traffic
}

// Traffic is what went through a network interface since it came up.
type Traffic struct {
	Name           string
	Sent, Received int64            // bytes, with all headers
	Allowance      map[string]int64 // Amazon's ENA: how often an allowance of the instance was exceeded, by the driver's own name
}

// NIC is a network interface as it is set up.
type NIC struct {
	Name, Driver       string
	BitsPerSecond      int64 // of the link; 0 where the driver does not tell, as virtual ones do
	MTU                int
	TxQueues, RxQueues int
}
