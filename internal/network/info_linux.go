package network

import (
	"math"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ask reads TCP_INFO (include/uapi/linux/tcp.h). Times in it are microseconds. It returns false unless raw is of TCP.
func ask(raw syscall.RawConn) (kernel, bool) {
	var info *unix.TCPInfo
	var failed error
	err := raw.Control(func(fd uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err != nil || failed != nil {
		return kernel{}, false
	}
	k := kernel{
		busy: microseconds(info.Busy_time), rwndLimited: microseconds(info.Rwnd_limited), sndbufLimited: microseconds(info.Sndbuf_limited),
		smoothed: microseconds(uint64(info.Rtt)), shortest: microseconds(uint64(info.Min_rtt)),
		sent:        time.Duration(info.Last_data_sent) * time.Millisecond,
		retransmits: int64(info.Total_retrans), segments: int64(info.Data_segs_out), deliveryRate: int64(info.Delivery_rate),
	}
	if info.Min_rtt == math.MaxUint32 { // none was measured yet
		k.shortest = 0
	}
	return k, true
}

func microseconds(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }
