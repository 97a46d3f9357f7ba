package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/cli"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/event"
)

// The tests of this file hold what users and their scripts see, whatever the code behind it looks like: help,
// statements, names of fields, bytes on the wire.

// TestHelpOfEveryCommand holds the generated part of docs/CLI.md, which is the help of all commands.
func TestHelpOfEveryCommand(t *testing.T) {
	s := newShell(t)
	require.Equal(t, s.run(), s.run("--help"), "help is what terapush without a command prints")
	const page, generated = "../../../docs/CLI.md", "-update -->\n"
	written, _, _ := strings.Cut(read(t, filepath.Join("testdata", page)), generated)
	golden.Equal(t, page, written+generated+s.help("terapush"))
}

// help returns the help of a command, and of those that it lists.
func (s shell) help(command string) string {
	r := s.run(append(strings.Fields(command)[1:], "--help")...)
	require.Zero(s, r.code, r.stderr)
	text := fmt.Sprintf("\n## %s\n\n```text\n%s```\n", command, r.stdout)
	for _, title := range []string{"\nCommands:\n", "\nMore help, with terapush help TOPIC:\n"} {
		_, list, _ := strings.Cut(r.stdout, title)
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			if name := strings.Fields(line)[0]; name != "completion" { // which is cobra's
				text += s.help(command + " " + name)
			}
		}
	}
	return text
}

// store is where staged methods put their objects.
const store = " --staging s3://bucket/pre/fix?region=eu-1"

// dryRuns are the pushes that testdata/dry-run shows, by back-end: every method and scheme, with options and datasets
// that change the statements.
var dryRuns = map[string][]string{
	"postgres": {
		"postgres://u:hunter2@h1,h2:5433/db --method copy --table s.t --set synchronous_commit=off",
		"postgres://u@h/db --method copy --dataset people --format csv --delivery at-least-once",
		"postgres://u@h/db --method copy --dataset lineitem --create recreate --primary-key --unlogged",
		"postgres://u@h/db --method copy --dataset httplogs --create truncate --format pgtext --verify full",
		"postgresql://u@h/db --method insert --dataset journal",
		"postgres://u@h/db --method s3-import" + store,
		"yugabyte://u@h/db --method copy",
		"yugabyte://u@h/db --method copy --delivery at-least-once",
		"yugabyte://u@h/db --method copy --rows-per-transaction 20000",
		"yugabyte://u@h/db --method copy --rows-per-transaction 20000 --delivery exactly-once",
		"yugabyte://u@h/db --method copy --disable-transactional-writes",
		"yugabyte://u@h/db --method insert --dataset lineitem",
		"redshift://u@h/db --method copy",
		"redshift://u@h/db --method s3-copy --dataset people" + store,
		"redshift://u@h/db --method s3-copy --dataset lineitem --s3-keys" + store,
		"redshift://u@h/db --method s3-copy --dataset people --create recreate --delivery at-least-once" + store,
	},
	"mysql": {
		"mysql://u:hunter2@h/db --method load-data --append",
		"mysql://u@h/db --method load-data --dataset httplogs --delivery at-least-once",
		"mysql://u@h/db --method insert --dataset people --create recreate",
		"mysql://u@h/db --method pipeline" + store,
		"mariadb://u@h/db --method load-data --dataset lineitem --primary-key --create truncate",
		"mariadb://u@h/db --method insert --dataset journal --set unique_checks=0",
		"tidb://u@h/db --method load-data",
		"tidb://u@h/db --method insert --dataset lineitem",
		"oceanbase://u@h/db --method load-data",
		"oceanbase://u@h/db --method insert",
		"singlestore://u@h/db --method load-data --dataset httplogs",
		"singlestore://u@h/db --method insert",
		"singlestore://u@h/db --method pipeline --dataset lineitem" + store,
		"singlestore://u@h/db --method pipeline --batch-bytes 256MiB --commit-batches 2 --batch-interval 500" + store,
		"singlestore://u@h/db --method pipeline --create recreate --delivery at-least-once" + store,
	},
	"oracle": {
		"oracle://u:hunter2@h/s --method array --set commit_logging=batch",
		"oracle://u@h/s --method array --dataset httplogs --create recreate --delivery at-least-once",
		"oracle://u@h/s --method single --dataset pairs",
		"oracle://u@h/s --method single --dataset pairs --delivery exactly-once",
		"oracle://u@h/s --method batch --dataset lineitem --create truncate",
		"oracle://u@h/s --method fast --dataset pairs",
		"oracle://u@h/s --method direct",
		"oracle://u@h/s --method cloud-copy --dataset people" + store,
	},
	"databend": {
		"databend://u:hunter2@h/db --method streaming-load --payload-kind text",
		"databend://u@h/db --method streaming-load --dataset httplogs --create recreate --delivery at-least-once",
		"databend://u@h/db --method insert --dataset journal --format ndjson --stage loads",
		"databend://u@h/db --method insert --delivery at-least-once",
		"databend://u@h/db --method insert-no-presign",
		"databend://u@h/db --method stage-load --dataset lineitem",
		"databend://u@h/db --method stage-load" + store,
		"databend://u@h/db --method stage-load --create truncate --delivery at-least-once" + store,
	},
	"doris": {
		"doris://u:hunter2@h/db --method stream-load --dataset people",
		"doris://u@h/db --method stream-load --dataset httplogs --create truncate --delivery at-least-once",
		"doris://u@h/db --method stream-load --dataset people --group-commit async --group-commit-interval-ms 1000",
		"doris://u@h/db --method insert --dataset lineitem --primary-key",
		"doris://u@h/db --method insert --payload-kind text --group-commit sync --buckets 8 --replication 3",
		"doris://u@h/db --method s3-load --payload-kind text" + store,
		"doris://u@h/db --method s3-load --dataset journal --create recreate --delivery at-least-once" + store,
	},
	"s3": {
		"s3://bucket/pre/fix?region=eu-1 --method put --format csv --dataset people",
		"s3://bucket/pre/fix?region=eu-1 --method put --format parquet --delivery at-least-once",
	},
	"discard": {
		"discard:// --method discard",
		"discard:// --duration 10m --payload-kind text --format csv --distinct-bytes all --first-key 7 --verify full",
	},
}

// dryLoads are the loads that testdata/dry-run shows, of a server that cannot be reached.
var dryLoads = []string{
	"postgres://u:hunter2@127.0.0.1:1/db testdata/files/*.csv* --table s.t --header",
	"postgres://u@127.0.0.1:1/db testdata/files/d.tsv --table t",
	"mysql://u@127.0.0.1:1/db testdata/files/d.tsv --table t --columns id,,total --rejects r.jsonl --max-rejects 5 --verify count",
	"databend://u@127.0.0.1:1/db testdata/files/a.csv --table t --header --null x",
}

func TestDryLoad(t *testing.T) {
	s := newShell(t)
	here, err := os.Getwd()
	require.NoError(t, err)
	var text strings.Builder
	for _, args := range dryLoads {
		fmt.Fprintf(&text, "$ terapush load %s\n", strings.ReplaceAll(args, "hunter2", "PASSWORD"))
		r := s.run(strings.Fields("load " + args + " --workers 4 --memory 512MiB --dry-run")...)
		require.Zero(t, r.code, r.stderr)
		require.NotContains(t, r.stdout+r.stderr, "hunter2")
		require.NotContains(t, r.stdout, "\n-- refused")
		text.WriteString(strings.ReplaceAll(r.stdout, here, "DIR") + "\n")
	}
	golden.Equal(t, "dry-run/load.txt", text.String())
	require.NoFileExists(t, "r.jsonl")
	require.NoDirExists(t, filepath.Join(s.env["XDG_STATE_HOME"], "terapush"))
}

func TestDryRun(t *testing.T) {
	s := newShell(t)
	for _, key := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(key, "hunter2-of-the-store")
	}
	for target, pushes := range dryRuns {
		var text strings.Builder
		for _, args := range pushes {
			fmt.Fprintf(&text, "$ terapush push %s\n", strings.ReplaceAll(args, "hunter2", "PASSWORD"))
			if !strings.Contains(args, "--duration") {
				args += " --bytes 1GiB"
			}
			r := s.run(strings.Fields("push " + args + " --workers 4 --memory 512MiB --dry-run")...)
			text.WriteString(r.stdout)
			if r.code != 0 {
				fmt.Fprintf(&text, "%sexit code %d\n", r.stderr, r.code)
			}
			text.WriteByte('\n')
			require.NotContains(t, r.stdout+r.stderr, "hunter2")
			require.NotContains(t, r.stdout, "X-Amz-", "of a presigned URL")
			require.NotContains(t, r.stdout, "\n-- refused", "the back-end takes what its Check has taken")
		}
		golden.Equal(t, "dry-run/"+target+".txt", text.String())
	}
	require.NoDirExists(t, filepath.Join(s.env["XDG_STATE_HOME"], "terapush"))

	for line := range strings.Lines(s.run("list", "targets").stdout) {
		columns := regexp.MustCompile(`  +`).Split(strings.TrimSpace(line), -1)
		if len(columns) < 3 || columns[0] == "TARGET" {
			continue
		}
		all := strings.Join(dryRuns[columns[0]], " \n")
		for _, scheme := range strings.Split(columns[1], ", ") {
			require.Contains(t, all, scheme+"://")
		}
		for _, method := range strings.Split(columns[2], ", ") {
			require.Contains(t, all+" ", " --method "+method+" ")
		}
	}
}

// TestFields holds the names and types of all that is written as JSON, for scripts and for later versions.
func TestFields(t *testing.T) {
	for schema, types := range map[string][]any{
		"report": {report.Report{}},
		"sweep":  {results.Head{}, results.Entry{}},
		"table": {struct {
			Schema string          `json:"schema"`
			Tables []results.Table `json:"tables"`
		}{}},
		"compare":  {results.Comparison{}},
		"doctor":   {host.Report{}},
		"tune":     {sweep.Found{}},
		"ceilings": {[]baseline.Measurement{}},
		"runs":     {cli.RunList{}},
		"journal":  {runlog.Header{}, event.Event{}},
	} {
		var text strings.Builder
		for _, v := range types {
			lines := fields("", reflect.TypeOf(v))
			slices.Sort(lines)
			text.WriteString(strings.Join(lines, "\n") + "\n")
		}
		golden.Equal(t, "fields/"+schema+".txt", text.String())
	}

	// What the types say is what the commands write.
	s := newShell(t)
	s.run("push", "discard://", "--rows", "10", "--progress", "none", "--state-dir", s.env["XDG_STATE_HOME"])
	journals, err := filepath.Glob(s.env["XDG_STATE_HOME"] + "/*/*.jsonl")
	require.NoError(t, err)
	require.Len(t, journals, 3)
	journal, _, _ := strings.Cut(read(t, journals[0]), "\n")
	for schema, text := range map[string]string{
		"report":  s.run("push", "discard://", "--rows", "10", "--progress", "none", "--json").stdout,
		"table":   s.run("report", recorded("workers.jsonl"), "--format", "json").stdout,
		"compare": s.run("compare", recorded("workers.jsonl"), recorded("workers-after.jsonl"), "--json").stdout,
		"doctor":  s.run("doctor", "--json").stdout,
		"journal": journal,
		"runs":    s.run("runs", "--json", "--state-dir", s.env["XDG_STATE_HOME"]).stdout,
	} {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &v), schema)
		version := "v1"
		if schema == "journal" {
			version = "v3"
		}
		require.Equal(t, "terapush."+schema+"/"+version, v["schema"])
		for name := range v {
			require.Regexp(t, `(?m)^`+name+`\b`, read(t, "testdata/fields/"+schema+".txt"), schema)
		}
	}
}

// fields lists what encoding/json makes of a type: path, type, and whether it may be left out. [] is a list, {} an
// object with names of its own.
func fields(path string, t reflect.Type) (all []string) {
	switch t.Kind() {
	case reflect.Pointer:
		return fields(path, t.Elem())
	case reflect.Slice:
		return fields(path+"[]", t.Elem())
	case reflect.Map:
		return fields(path+"{}", t.Elem())
	case reflect.Struct:
		// A column's generator is a key of its own name.
		own := t == reflect.TypeFor[dataset.SpecColumn]()
		if t == reflect.TypeFor[time.Time]() || own || t == reflect.TypeFor[report.Report]() && path != "" {
			return []string{path + " " + t.String()}
		}
	default:
		return []string{path + " " + strings.TrimRight(t.Kind().String(), "123468")}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case f.Anonymous && name == "":
			all = append(all, fields(path, f.Type)...)
			continue
		case name == "":
			name = f.Name
		}
		for _, line := range fields(strings.TrimPrefix(path+"."+name, "."), f.Type) {
			if rest != "" {
				line += " " + rest
			}
			all = append(all, line)
		}
	}
	return all
}

// TestBytesOnTheWire holds a checksum of all that a push sends, from dataset to socket. Rows repeat under new keys, so
// that stamped buffers are among it. The sink combines batches by exclusive or: their number is odd, or what all of
// them have in common would not count. MySQL's insert is not here: its statements name the run.
func TestBytesOnTheWire(t *testing.T) {
	s := newShell(t)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "sink")
	}
	var text strings.Builder
	for _, push := range []string{
		"postgres://me@{postgres}/db?sslmode=disable --method copy",
		"postgres://me@{postgres}/db?sslmode=disable --method copy --format pgtext",
		"postgres://me@{postgres}/db?sslmode=disable --method copy --format csv --dataset people",
		"postgres://me@{postgres}/db?sslmode=disable --method insert",
		"mysql://me@{mysql}/db?tls=false --method load-data",
		"mysql://me@{mysql}/db?tls=false --method load-data --dataset lineitem",
		"mysql://me@{mysql}/db?tls=false --method load-data --dataset journal",
		"databend://me@{databend}/db?sslmode=disable --method streaming-load",
		"databend://me@{databend}/db?sslmode=disable --method streaming-load --format csv --dataset people",
		"databend://me@{databend}/db?sslmode=disable --method insert-no-presign --format ndjson --dataset httplogs",
		"doris://me@{doris-sql}/db?http_port={doris} --method stream-load --payload-kind text",
		"doris://me@{doris-sql}/db?http_port={doris} --method stream-load --format ndjson --dataset journal",
		"doris://me@{doris-sql}/db?http_port={doris} --method insert --dataset lineitem",
		"s3://bucket/in?region=us-east-1&path_style=true&endpoint=http://{s3} --method put --format tsv --dataset pairs",
		"s3://bucket/in?region=us-east-1&path_style=true&endpoint=http://{s3} --method put --format parquet --dataset lineitem",
	} {
		r := s.sink(free("--json", "--crc")...)
		var at listening
		r.line(t, &at)
		args := push
		for name, address := range at.Listening {
			if name == "doris" {
				_, address, _ = strings.Cut(address, ":")
			}
			args = strings.ReplaceAll(args, "{"+name+"}", address)
		}
		p := s.run(strings.Fields("push " + args + " --create never --delivery at-least-once --verify none --progress none" +
			" --workers 2 --first-key 100 --rows 2100 --batch-rows 300 --distinct-bytes 16KiB")...)
		require.Zero(t, p.code, "%s\n%s", push, p.stderr)
		var end struct{ Took map[string]sink.Stats }
		require.NoError(t, json.Unmarshal([]byte(r.end(t)), &end))
		fmt.Fprintln(&text, push)
		for _, name := range slices.Sorted(maps.Keys(end.Took)) {
			if took := end.Took[name]; took.Rows > 0 {
				fmt.Fprintf(&text, "  %s took %d rows, %d bytes, crc32c %s\n", name, took.Rows, took.Bytes, took.CRC)
			}
		}
	}
	golden.Equal(t, "wire.txt", text.String())
}
