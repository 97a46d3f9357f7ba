package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// next returns what to do after a run of a command that did not succeed, or "". found are the flags that find the run.
func next(command string, r *report.Report, found string) string {
	if r == nil {
		return ""
	}
	switch {
	case r.Run.Resumable && config.IsRunName(r.Run.ID):
		return "to resume: run the same command again, here or on another machine"
	case r.Run.Resumable:
		line := fmt.Sprintf("to resume: terapush %s %s --resume %s%s", command, units.ShellWord(r.Target.URL), r.Run.ID, found)
		switch {
		case command != "load" || !recordsRefused(r) || strings.Contains(found, " --rejects "):
		case r.Plan.Files.Labels:
			line += "\nafter a change of the table, so that it takes the record; corrected files are another load, into a table without these rows"
		default:
			line += "\nto leave out what the server refuses: the same with --rejects refused.jsonl --max-rejects 1000"
		}
		return line
	case command == "load": // whose proof is of the claims
		return ""
	case r.Run.ID != "" && r.Result.Outcome == report.VerificationFailed:
		return fmt.Sprintf("to verify again: terapush verify %s --run %s%s", units.ShellWord(r.Target.URL), r.Run.ID, found)
	default:
		return ""
	}
}

// recordsRefused reports whether the server did not take some records of files. A new load of files that were corrected
// would double those that are in.
func recordsRefused(r *report.Report) bool {
	for _, class := range []loader.Class{loader.ClassData, loader.ClassConstraint, loader.ClassRows} {
		if r.Result.Errors[string(class)] > 0 {
			return true
		}
	}
	return false
}

// foundBy repeats the flags that the next command needs to find the run and to log in, and that the record does not
// keep.
func foundBy(f *pflag.FlagSet) string {
	var text strings.Builder
	for _, name := range []string{"state-dir", "password-file"} {
		if flag := f.Lookup(name); flag.Changed {
			fmt.Fprintf(&text, " --%s %s", name, units.ShellWord(flag.Value.String()))
		}
	}
	for _, name := range []string{"rejects", "max-rejects"} { // of a load, which another process goes on with
		flag := f.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		value := flag.Value.String()
		if path, err := filepath.Abs(value); name == "rejects" && err == nil {
			value = path
		}
		fmt.Fprintf(&text, " --%s %s", name, units.ShellWord(value))
	}
	return text.String()
}
