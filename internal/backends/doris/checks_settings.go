package doris

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// setting is one of the cluster's that a push can be too large for.
type setting struct {
	check, name string
	matters     bool
	// judge returns the finding on the value, whose Found is what stands behind "name = value".
	judge func(n int64) loader.Finding
}

// settings compares what frontends and backends bound with the run. Bodies of JSON have a line for each row, to which
// the smaller bound streaming_load_json_max_mb does not apply. A frontend forgets labels by age, and by number. Each
// load is a new version of every tablet that it touches, and loads are refused (-235) where compaction does not merge
// them as fast as they come.
func (x *doctor) settings(context.Context) error {
	const (
		running, age, number = "max_running_txn_num_per_db", "streaming_label_keep_max_second", "label_num_threshold"
	)
	streams, merges := x.method.Name == streamLoad, x.options.group.on()
	workers, batch, loads := int64(x.intent.Workers), x.intent.BatchBytes, x.transactions()
	_, numbered := x.config[number]
	const secret = "how long labels are kept, and how many transactions run at a time,"
	x.compare("frontend", secret, x.admin("ADMIN_PRIV"), []setting{
		{"transactions", running, true, func(n int64) loader.Finding {
			switch {
			case workers > n:
				const means = ", for %d workers: what comes above it is refused, and sent again later"
				return sqlload.Warn(fmt.Sprintf(means, workers), set(running, 2*workers))
			}
			return sqlload.OK(fmt.Sprintf(", for %d workers", workers))
		}},
		{"labels", age, !merges, func(n int64) loader.Finding {
			if wanted := int64(labelLife.Seconds()); n < wanted {
				const means = ", and a run counts on %d: one that is resumed later than that loads batches twice"
				return sqlload.Warn(fmt.Sprintf(means, wanted), set(age, wanted))
			}
			return sqlload.OK("")
		}},
		{"labels", number, !merges && numbered, func(n int64) loader.Finding {
			if n > 0 && loads > n {
				return sqlload.Warn(fmt.Sprintf(" labels are kept of a database, and the run is %d loads: "+
					"a batch that is resolved more than %d loads later is not recognised", loads, n), set(number, 2*loads))
			}
			return sqlload.OK("")
		}},
	})
	if x.method.Name == insert {
		x.packet()
	}
	x.compare("backend", streamMegabytes+" (10240 by default) and "+tabletVersions,
		x.admin("ADMIN_PRIV")+"; before Doris 3.0: curl http://BACKEND:8040/varz", []setting{
			{"body size", streamMegabytes, streams, func(n int64) loader.Finding {
				switch {
				case batch > n<<20:
					const fix = "--batch-bytes %dMiB, or on every backend: " +
						"curl -X POST 'http://BACKEND:8040/api/update_config?%s=%d&persist=true'"
					return sqlload.Fail(", and batches have "+mebibytes(batch)+": every load is refused",
						fmt.Sprintf(fix, n, streamMegabytes, batch>>20+1))
				}
				return sqlload.OK(", for batches of " + mebibytes(batch))
			}},
			{"tablet versions", tabletVersions, true, func(n int64) loader.Finding {
				switch {
				case merges:
					return sqlload.OK("; group commit merges loads into fewer versions")
				case n > 0 && loads > n:
					const means = ", and %d loads are as many versions of each tablet: " +
						"compaction has to merge %d of them while the run goes on, or loads are refused (-235)"
					return sqlload.Warn(fmt.Sprintf(means, loads, loads-n), x.fewer(n))
				}
				return sqlload.OK(fmt.Sprintf(", and each of %d loads is a version of each tablet", loads))
			}},
		})
	return nil
}

// compare holds the settings of an owner against the run. secret and fix are for an owner that does not tell them.
func (x *doctor) compare(owner, secret, fix string, all []setting) {
	if refused := x.refused[owner]; refused != "" {
		x.unknown(owner+" settings", secret+" cannot be read: "+refused, fix)
		return
	}
	for _, s := range all {
		if !s.matters {
			continue
		}
		n, known := x.number(s.name)
		if !known {
			x.unknown(s.check, s.name+" is not among the "+owner+"'s settings", "")
			continue
		}
		f := s.judge(n)
		f.Check, f.Found = s.check, fmt.Sprintf("%s = %d%s", s.name, n, f.Found)
		x.findings = append(x.findings, f)
	}
}

// set is the statement that changes a setting of all frontends until they restart.
func set(name string, value int64) string {
	return fmt.Sprintf(`ADMIN SET ALL FRONTENDS CONFIG ("%s" = "%d"), and the same in fe.conf`, name, value)
}

// packet compares an INSERT with the frontend's max_allowed_packet.
func (x *doctor) packet() {
	const check = "statement size"
	most, batch := x.caps.MaxBytes, x.intent.BatchBytes
	found := fmt.Sprintf("max_allowed_packet leaves %s for the rows of an INSERT", mebibytes(most))
	if batch <= most {
		x.ok(check, found)
		return
	}
	x.add(check, loader.GradeFail, found+", and batches have "+mebibytes(batch),
		fmt.Sprintf("--batch-bytes %d, or SET GLOBAL max_allowed_packet = %d", most, batch+packetRoom))
}

// mebibytes writes a size as a flag takes it, rounded up.
func mebibytes(n int64) string { return fmt.Sprintf("%.0fMiB", math.Ceil(float64(n)/(1<<20))) }

// fewer is the setting that makes half as many loads as there may be versions.
func (x *doctor) fewer(most int64) string {
	fix := "--batch-bytes " + mebibytes(min(x.intent.TotalBytes/max(most/2, 1)+1, maxStreamBytes))
	if x.method.Name == insert {
		return "--method " + streamLoad + " " + fix
	}
	return fix
}

// Bounds of a disk's use in percent, by default: from the first on the balancer moves nothing there any more, and from
// the second on no load is taken (storage_high_watermark_usage_percent, storage_flood_stage_usage_percent).
const (
	highUse  = 85
	floodUse = 95
)

// disks looks for those that are full, and whether all of them have room for the rows, which are kept compressed.
func (x *doctor) disks(context.Context) error {
	var fullest, free float64
	where := ""
	for _, b := range x.backends {
		used, ok := percent(cmp.Or(b["MaxDiskUsedPct"], b["UsedPct"]))
		if ok && (where == "" || used > fullest) {
			fullest, where = used, b["Host"]
		}
		free += gigabytes(b["AvailCapacity"])
	}
	if where == "" || x.cloud() { // elsewhere the rows are in an object store
		return nil
	}
	const check = "disks"
	found := fmt.Sprintf("the fullest is used by %.0f %% (%s), and %.0f GB are free on all of them", fullest, where, free)
	need := float64(x.intent.TotalBytes) / (1 << 30)
	switch {
	case fullest >= highUse: // no failure: other backends may hold enough replicas
		x.add(check, loader.GradeWarn, found, fmt.Sprintf("make room on %s: from %d %% on no load is taken", where, floodUse))
	case need > free:
		found += fmt.Sprintf(", for %.0f GB of rows times the replicas, less what compression saves", need)
		x.add(check, loader.GradeWarn, found, "add backends or disks, or push less with --bytes")
	default:
		x.ok(check, found)
	}
	return nil
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
	const k = 1 << 10
	return n * map[string]float64{"PB": k * k, "TB": k, "GB": 1, "MB": 1.0 / k, "KB": 1.0 / (k * k)}[unit]
}
