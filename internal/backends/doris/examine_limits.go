package doris

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// frontend compares what frontends bound with the run.
func (x *examination) frontend() []loader.Finding {
	if err := x.refused["frontend"]; err != nil {
		return []loader.Finding{{Check: "frontend settings", Grade: loader.GradeUnknown,
			Found: "how long labels are kept, and how many transactions run at a time, cannot be read: " + err.Error(),
			Fix:   "GRANT ADMIN_PRIV ON *.*.* TO " + x.user()}}
	}
	all := []loader.Finding{x.transactions()}
	if !x.db.options.group.on() {
		all = append(all, x.labels())
	}
	if x.db.method.Name == streamLoad {
		all = append(all, x.timeout())
	}
	return all
}

// set is the statement that changes a setting of all frontends until they restart.
func set(name string, value int64) string {
	return fmt.Sprintf(`ADMIN SET ALL FRONTENDS CONFIG ("%s" = "%d"), and the same in fe.conf`, name, value)
}

func (x *examination) transactions() loader.Finding {
	const name = "max_running_txn_num_per_db"
	f := loader.Finding{Check: "transactions", Grade: loader.GradeOK}
	most, known := x.number(name)
	workers := int64(x.intent.Workers)
	switch {
	case !known:
		f.Grade, f.Found = loader.GradeUnknown, name+" is not among the frontend's settings"
	case workers > most:
		f.Grade, f.Fix = loader.GradeWarn, set(name, 2*workers)
		f.Found = fmt.Sprintf("%s = %d, for %d workers: what comes above it is refused, and sent again later", name, most, workers)
	case workers == 0:
		f.Found = fmt.Sprintf("%s = %d", name, most)
	default:
		f.Found = fmt.Sprintf("%s = %d, for %d workers and all others", name, most, workers)
	}
	return f
}

// labels compares what the frontend remembers with what a run counts on. It forgets by age, and by number.
func (x *examination) labels() loader.Finding {
	const age, number = "streaming_label_keep_max_second", "label_num_threshold"
	f := loader.Finding{Check: "labels", Grade: loader.GradeOK}
	seconds, aged := x.number(age)
	most, counted := x.number(number)
	wanted := int64(labelLife.Seconds())
	switch loads := x.loads(); {
	case !aged:
		f.Grade, f.Found = loader.GradeUnknown, age+" is not among the frontend's settings"
	case seconds < wanted:
		f.Grade, f.Fix = loader.GradeWarn, set(age, wanted)
		f.Found = fmt.Sprintf("%s = %d, and a run counts on %d: one that is resumed later than that loads batches twice", age, seconds, wanted)
	case counted && most > 0 && loads > most:
		f.Grade, f.Fix = loader.GradeWarn, set(number, 2*loads)
		f.Found = fmt.Sprintf("%s = %d labels are kept of a database, and the run is %d loads: a batch that is resolved more than %d loads later is not recognised",
			number, most, loads, most)
	default:
		f.Found = fmt.Sprintf("kept for %d s, and %s of a database at the most", seconds, x.config[number])
	}
	return f
}

// leastLoadTime is what a load of a large batch may take on a busy cluster, in seconds.
const leastLoadTime = 300

func (x *examination) timeout() loader.Finding {
	const most, usual = "max_stream_load_timeout_second", "stream_load_default_timeout_second"
	f := loader.Finding{Check: "load timeout", Grade: loader.GradeOK}
	n, known := x.number(most)
	switch {
	case !known:
		f.Grade, f.Found = loader.GradeUnknown, most+" is not among the frontend's settings"
	case n < leastLoadTime:
		f.Grade, f.Fix = loader.GradeWarn, set(most, 259200)
		f.Found = fmt.Sprintf("%s = %d: a load that takes longer is refused or ended", most, n)
	default:
		f.Found = fmt.Sprintf("each load brings its own, up to %s = %d s (%s s where none is given)", most, n, x.config[usual])
	}
	return f
}

// backend compares what backends bound with the batches.
func (x *examination) backend() []loader.Finding {
	all := x.packet()
	if err := x.refused["backend"]; err != nil {
		return append(all, loader.Finding{Check: "backend settings", Grade: loader.GradeUnknown,
			Found: fmt.Sprintf("%s (10240 by default) and %s cannot be read: %v", streamMegabytes, tabletVersions, err),
			Fix:   "GRANT ADMIN_PRIV ON *.*.* TO " + x.user() + "; before Doris 3.0: curl http://BACKEND:8040/varz"})
	}
	if x.db.method.Name == streamLoad {
		all = append(all, x.bodySize())
	}
	return append(all, x.versions())
}

// packet compares an INSERT with the frontend's max_allowed_packet.
func (x *examination) packet() []loader.Finding {
	if x.db.method.Name != insert {
		return nil
	}
	f := loader.Finding{Check: "statement size", Grade: loader.GradeOK,
		Found: fmt.Sprintf("max_allowed_packet leaves %s for the rows of an INSERT", mebibytes(x.db.caps.MaxBytes))}
	if x.intent.BatchBytes > x.db.caps.MaxBytes {
		f.Grade, f.Fix = loader.GradeFail, fmt.Sprintf("--batch-bytes %d, or SET GLOBAL max_allowed_packet = %d", x.db.caps.MaxBytes, x.intent.BatchBytes+packetRoom)
		f.Found += ", and batches have " + mebibytes(x.intent.BatchBytes)
	}
	return []loader.Finding{f}
}

// bodySize compares a batch with the largest body. Bodies of JSON have a line for each row, to which the smaller bound
// streaming_load_json_max_mb does not apply.
func (x *examination) bodySize() loader.Finding {
	f := loader.Finding{Check: "body size", Grade: loader.GradeOK}
	most, known := x.limits[streamMegabytes]
	switch {
	case !known:
		f.Grade, f.Found = loader.GradeUnknown, streamMegabytes+" is not among the backends' settings"
	case x.intent.BatchBytes > most<<20:
		f.Grade = loader.GradeFail
		f.Found = fmt.Sprintf("%s = %d, and batches have %s: every load is refused", streamMegabytes, most, mebibytes(x.intent.BatchBytes))
		f.Fix = fmt.Sprintf("--batch-bytes %dMiB, or on every backend: curl -X POST 'http://BACKEND:8040/api/update_config?%s=%d&persist=true'",
			most, streamMegabytes, x.intent.BatchBytes>>20+1)
	default:
		f.Found = fmt.Sprintf("%s = %d, for batches of %s", streamMegabytes, most, mebibytes(x.intent.BatchBytes))
		if x.intent.BatchBytes <= 0 {
			f.Found = fmt.Sprintf("%s = %d", streamMegabytes, most)
		}
	}
	return f
}

// versions: each load is a new version of every tablet that it touches, and loads are refused (-235) where compaction
// does not merge them as fast as they come.
func (x *examination) versions() loader.Finding {
	f := loader.Finding{Check: "tablet versions", Grade: loader.GradeOK}
	most, known := x.limits[tabletVersions]
	switch loads := x.loads(); {
	case !known:
		f.Grade, f.Found = loader.GradeUnknown, tabletVersions+" is not among the backends' settings"
	case x.db.options.group.on():
		f.Found = fmt.Sprintf("%s = %d; group commit merges loads into fewer versions", tabletVersions, most)
	case most > 0 && loads > most:
		f.Grade, f.Fix = loader.GradeWarn, x.fewer(most)
		f.Found = fmt.Sprintf("%d loads are as many versions of each tablet, and %s = %d: compaction has to merge %d of them while the run goes on, or loads are refused (-235)",
			loads, tabletVersions, most, loads-most)
	case loads > 0:
		f.Found = fmt.Sprintf("%d loads are as many versions of each tablet, and %s = %d", loads, tabletVersions, most)
	default:
		f.Found = fmt.Sprintf("%s = %d, and each load is a version", tabletVersions, most)
	}
	return f
}

// fewer is the setting that makes half as many loads as there may be versions.
func (x *examination) fewer(most int64) string {
	size := x.intent.TotalBytes/max(most/2, 1) + 1
	if x.db.method.Name == insert {
		return fmt.Sprintf("--method %s --batch-bytes %s", streamLoad, mebibytes(min(size, maxStreamBytes)))
	}
	return "--batch-bytes " + mebibytes(min(size, maxStreamBytes))
}

// Bounds of a disk's use in percent, where the frontend does not say others: from the first on the balancer moves
// nothing there any more, and from the second on no load is taken.
const (
	highUse  = 85
	floodUse = 95
)

// disks looks for those that are full, and whether all of them have room for the rows, which are kept compressed.
func (x *examination) disks() []loader.Finding {
	f := loader.Finding{Check: "disks", Grade: loader.GradeOK}
	high, flood := float64(highUse), float64(floodUse)
	if n, known := x.number("storage_high_watermark_usage_percent"); known {
		high = float64(n)
	}
	if n, known := x.number("storage_flood_stage_usage_percent"); known {
		flood = float64(n)
	}
	var fullest, free float64
	where := ""
	for _, b := range x.backends {
		used, ok := percent(firstOf(b["MaxDiskUsedPct"], b["UsedPct"]))
		if ok && (where == "" || used > fullest) {
			fullest, where = used, b["Host"]
		}
		free += gigabytes(b["AvailCapacity"])
	}
	if where == "" || computeGroup(x.backends) != "" { // elsewhere the rows are in an object store
		return nil
	}
	f.Found = fmt.Sprintf("the fullest is used by %.0f %% (%s), and %.0f GB are free on all of them", fullest, where, free)
	need := float64(x.intent.TotalBytes) / (1 << 30)
	switch {
	case fullest >= flood:
		// A backend refuses loads when little is left besides, 1 GB by default, and others may hold enough replicas.
		f.Grade, f.Fix = loader.GradeWarn, fmt.Sprintf("make room on %s: from %.0f %% on loads are refused there (storage_flood_stage_usage_percent)", where, flood)
	case fullest >= high:
		f.Grade, f.Fix = loader.GradeWarn, fmt.Sprintf("make room on %s: from %.0f %% on no load is taken", where, flood)
	case need > free:
		f.Grade, f.Fix = loader.GradeWarn, "add backends or disks, or push less with --bytes"
		f.Found += fmt.Sprintf(", for %.0f GB of rows times the replicas, less what compression saves", need)
	}
	return []loader.Finding{f}
}

// percent reads a text such as "12.34 %".
func percent(text string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(text, "%")), 64)
	return n, err == nil
}

// gigabytes reads a text such as "1.234 TB"; 0 where it is none.
func gigabytes(text string) float64 {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0
	}
	return n * map[string]float64{"PB": 1 << 20, "TB": 1 << 10, "GB": 1, "MB": 1.0 / (1 << 10), "KB": 1.0 / (1 << 20)}[unit]
}
