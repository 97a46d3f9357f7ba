package host

// drivers is what the drivers of network interfaces are asked. No folder of a test can stand for it.
type drivers struct {
	// statistics are the counters that a driver keeps beside the kernel's, as ethtool -S prints them.
	statistics func(nic string) map[string]uint64
	// channels is how many queues it could have for sending, as ethtool -l prints it; 0 where it does not tell.
	channels func(nic string) int
}
