//go:build !unix

package stats

func systemUsage() (user, system float64, peak int64) { return 0, 0, 0 }
