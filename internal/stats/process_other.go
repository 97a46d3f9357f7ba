//go:build !unix

package stats

import "errors"

func systemUsage() (user, system float64, peak int64) { return 0, 0, 0 }

func queued() float64 { return 0 }

func resetPeak() error { return errors.ErrUnsupported }
