package netio

import (
	"math"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// control sets TCP_USER_TIMEOUT.
func control(network, _ string, raw syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return failed
}

// readInfo reads TCP_INFO (include/uapi/linux/tcp.h), whose times are microseconds. It returns false unless raw is TCP.
func readInfo(raw syscall.RawConn) (tcpInfo, bool) {
	var info *unix.TCPInfo
	var failed error
	err := raw.Control(func(fd uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err != nil || failed != nil {
		return tcpInfo{}, false
	}
	k := tcpInfo{
		busy: microseconds(info.Busy_time), rwndLimited: microseconds(info.Rwnd_limited),
		sndbufLimited: microseconds(info.Sndbuf_limited), smoothed: microseconds(uint64(info.Rtt)),
		sent:        time.Duration(info.Last_data_sent) * time.Millisecond,
		retransmits: int64(info.Total_retrans), segments: int64(info.Data_segs_out), deliveryRate: int64(info.Delivery_rate),
	}
	if info.Min_rtt != math.MaxUint32 { // none was measured yet
		k.shortest = microseconds(uint64(info.Min_rtt))
	}
	return k, true
}

func microseconds(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }
