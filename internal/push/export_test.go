package push

import "time"

func init() { pollInterval = 20 * time.Millisecond }
