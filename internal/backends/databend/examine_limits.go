package databend

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
)

// slots compares how many statements run at a time with the workers. Uploads to a stage take none of them.
func (x *examination) slots(context.Context) ([]loader.Finding, error) {
	const check = "running queries"
	if x.configs == nil {
		return []loader.Finding{x.unreadable(check, "how many queries run at a time")}, nil
	}
	var all []loader.Finding
	hosts, workers := int64(len(x.db.nodes)), int64(x.intent.Workers)
	if n, known := x.config("query.max_running_queries"); !known {
		all = append(all, x.unreadable(check, "max_running_queries"))
	} else {
		all = append(all, slotsFinding(n, hosts, workers, x.db.plan.method.Caps.Staged))
	}
	if n, known := x.config("query.max_active_sessions"); known {
		all = append(all, sessionsFinding(n, hosts, workers))
	}
	return all, nil
}

func slotsFinding(running, hosts, workers int64, staged bool) loader.Finding {
	f := loader.Finding{Check: "running queries", Grade: loader.GradeOK, Found: "max_running_queries = 0: as many as come"}
	if running == 0 {
		return f
	}
	f.Found = fmt.Sprintf("max_running_queries = %d on each host, %d in all", running, running*hosts)
	switch {
	case staged:
		f.Found += ", and uploads take none of them"
	case workers > running*hosts:
		f.Grade = loader.GradeWarn
		f.Found += fmt.Sprintf(": of %d workers %d wait at any time", workers, workers-running*hosts)
		f.Fix = fmt.Sprintf("[query] max_running_queries = %d in databend-query.toml, and a restart; or --workers %d", (workers+hosts-1)/hosts, running*hosts)
	case workers > 0:
		f.Found += fmt.Sprintf(", enough for %d workers", workers)
	}
	return f
}

func sessionsFinding(most, hosts, workers int64) loader.Finding {
	f := loader.Finding{Check: "sessions", Grade: loader.GradeOK, Found: fmt.Sprintf("max_active_sessions = %d on each host", most)}
	if workers > most*hosts {
		f.Grade = loader.GradeWarn
		f.Found += fmt.Sprintf(": %d workers are more, and what comes above it is refused", workers)
		f.Fix = fmt.Sprintf("[query] max_active_sessions = %d in databend-query.toml, and a restart; or --workers %d", 2*workers, most*hosts)
	}
	return f
}

// leastResultTime is for how long an answer has to be kept: it is asked for again within ten seconds.
const leastResultTime = 30

// timeouts looks for what would end a load that is only slow.
func (x *examination) timeouts(context.Context) ([]loader.Finding, error) {
	const check = "timeouts"
	if len(x.settings) == 0 {
		return []loader.Finding{{Check: check, Grade: loader.GradeUnknown, Found: "system.settings cannot be read",
			Fix: "GRANT SELECT ON system.settings TO USER …"}}, nil
	}
	var all []loader.Finding
	warn := func(name, found string, wanted int) {
		all = append(all, loader.Finding{Check: name, Grade: loader.GradeWarn, Found: found, Fix: fmt.Sprintf("--set %s=%d", name, wanted)})
	}
	if n, known := x.setting(executeTimeout); known && n > 0 {
		warn(executeTimeout, fmt.Sprintf("a statement is ended after %d s, also one that loads", n), 0)
	}
	if n, known := x.setting(queueTimeout); known && n > 0 {
		warn(queueTimeout, fmt.Sprintf("a statement that has waited %d s for its turn is refused", n), 0)
	}
	if n, known := x.setting(resultTimeout); known && n < leastResultTime {
		warn(resultTimeout, fmt.Sprintf("an answer is forgotten after %d s: that of a long statement may be lost between two looks at it", n), 60)
	}
	if len(all) > 0 {
		return all, nil
	}
	return []loader.Finding{{Check: check, Grade: loader.GradeOK,
		Found: fmt.Sprintf("statements may wait and run for as long as they need; answers are kept for %s s", x.settings[resultTimeout])}}, nil
}

// memory tells for how long the server recognises what it has loaded.
func (x *examination) memory(context.Context) ([]loader.Finding, error) {
	if !x.db.plan.method.Caps.Staged {
		return []loader.Finding{{Check: "labels", Grade: loader.GradeOK,
			Found: "a batch's label is remembered for 24 hours; a run that is resumed later has to look for the rows themselves"}}, nil
	}
	hours, known := x.setting(fileMemory)
	f := loader.Finding{Check: "file names", Grade: loader.GradeOK,
		Found: fmt.Sprintf("COPY remembers for %d hours which files it has loaded", hours)}
	switch {
	case !known:
		f.Grade, f.Found = loader.GradeUnknown, fileMemory+" cannot be read"
	case hours < int64(labelWindow.Hours()):
		f.Grade, f.Fix = loader.GradeWarn, fmt.Sprintf("SET GLOBAL %s = %d", fileMemory, int64(labelWindow.Hours()))
		f.Found += ", and a run counts on 24: one that is resumed later than that loads files twice"
	}
	return []loader.Finding{f}, nil
}

// storage is where the server keeps tables and stages.
func (x *examination) storage(context.Context) ([]loader.Finding, error) {
	f := loader.Finding{Check: "storage", Grade: loader.GradeOK, Found: "type " + x.configs["storage.type"]}
	switch x.configs["storage.type"] {
	case "":
		return []loader.Finding{x.unreadable(f.Check, "what lies below tables and stages")}, nil
	case "memory":
		f.Grade, f.Fix = loader.GradeWarn, `[storage] type = "s3" (or fs) in databend-query.toml`
		f.Found += ": the rows are gone when the server ends"
	case "fs":
		f.Found += ": files of that machine, whose disk is part of what is measured"
	}
	return []loader.Finding{f}, nil
}
