package mysql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// pipe is one pipeline, with its statements (SingleStore manual, "Pipelines Commands" and "PIPELINES_FILES").
type pipe struct {
	statements
	l      *opened // nil for Explain
	name   string
	into   string // the table, without its database
	folder string // of the group's objects in the bucket
	access objstore.Access
	dedup  bool // groups that are in already have to be recognised
}

// The states of a pipeline and of a file that decide anything; others are Stopped, Error and Unloaded.
const (
	absent      = ""
	running     = "Running"
	fileLoaded  = "Loaded"
	fileSkipped = "Skipped"
)

// pipelineName is as unique as the run.
func pipelineName(group batch.ID) string {
	return fmt.Sprintf("terapush_%s_%d", strings.ReplaceAll(group.Run, "-", "_"), group.Number)
}

// ofRun reports whether a pipeline is one of the run's. Run a's group 1 is terapush_a_1, and the groups of run a-1 are
// terapush_a_1_….
func ofRun(pipeline, run string) bool {
	group, ours := strings.CutPrefix(pipeline, strings.TrimSuffix(pipelineName(batch.ID{Run: run}), "0"))
	_, err := strconv.ParseUint(group, 10, 63)
	return ours && err == nil
}

// create names fields and lines although they are LOAD DATA's defaults: the server keeps pipelines over an upgrade.
// There is no SKIP clause, so a bad value or a duplicate key fails its file, and with STOP_ON_ERROR the pipeline.
func (p *pipe) create() string {
	config := map[string]string{"region": p.access.Region}
	if p.access.Endpoint != "" {
		config["endpoint_url"] = p.access.Endpoint
	}
	return fmt.Sprintf("CREATE PIPELINE %s AS LOAD DATA S3 %s CONFIG %s CREDENTIALS %s STOP_ON_ERROR ON INTO TABLE %s"+
		` FIELDS TERMINATED BY '\t' ENCLOSED BY '' ESCAPED BY '\\' LINES TERMINATED BY '\n' STARTING BY '' (%s)`,
		quote(p.name), literal(p.access.Bucket+"/"+p.folder), jsonLiteral(config), p.credentials(), quote(p.into),
		p.Columns(p.Schema))
}

func (p *pipe) start() string { return "START PIPELINE IF NOT RUNNING " + quote(p.name) }

func (p *pipe) credentials() string {
	keys := map[string]string{"aws_access_key_id": p.access.KeyID, "aws_secret_access_key": p.access.Secret.Reveal()}
	if p.access.Token != "" {
		keys["aws_session_token"] = p.access.Token.Reveal()
	}
	return jsonLiteral(keys)
}

// jsonLiteral writes a JSON object, keys in order.
func jsonLiteral(fields map[string]string) string {
	text, _ := json.Marshal(fields) // strings cannot fail
	return literal(string(text))
}

// exec runs a statement that may hold credentials. A server quotes what it does not understand, so its errors are
// redacted.
func (p *pipe) exec(ctx context.Context, statement string) error {
	_, err := p.l.control.ExecContext(ctx, statement)
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return &mysql.MySQLError{Number: server.Number, SQLState: server.SQLState, Message: p.access.Redact(server.Message)}
	}
	return err
}

// query reads the pipeline's rows from a view of information_schema.
func (p *pipe) query(ctx context.Context, columns, view, order string) ([][]string, error) {
	return p.l.rows(ctx, "SELECT "+columns+" FROM information_schema."+view+
		" WHERE database_name = "+literal(p.l.target.Database)+" AND pipeline_name = "+literal(p.name)+order)
}

// state is the pipeline's, or absent.
func (p *pipe) state(ctx context.Context) (string, error) {
	found, err := p.query(ctx, "state", "pipelines", "")
	if err != nil || len(found) == 0 {
		return absent, err
	}
	return found[0][0], nil
}

// files are those that the pipeline has found so far, with their states.
func (p *pipe) files(ctx context.Context) (map[string]string, error) {
	found, err := p.query(ctx, "file_name, file_state", "pipelines_files", "")
	files := make(map[string]string, len(found))
	for _, row := range found {
		files[row[0]] = row[1]
	}
	return files, err
}

// errors are the pipeline's newest.
func (p *pipe) errors(ctx context.Context) []string {
	found, err := p.query(ctx, "error_message", "pipelines_errors", " ORDER BY error_unix_timestamp DESC LIMIT 3")
	if err != nil {
		return []string{"its errors cannot be read: " + err.Error()}
	}
	messages := firsts(found)
	for i := range messages {
		messages[i] = p.access.Redact(messages[i])
	}
	return messages
}

// begin starts the group's pipeline, a new one or the one that an earlier attempt has left. It returns false if the
// group is in already.
func (p *pipe) begin(ctx context.Context, ref loader.Ref) (bool, error) {
	state, err := p.state(ctx)
	if err != nil {
		return false, unknown("look for the pipeline", err)
	}
	if state == absent && p.dedup { // it was never begun, or is complete
		switch rows, err := p.count(ctx, ref); {
		case err != nil:
			return false, err
		case rows == ref.Rows:
			return false, nil
		case rows != 0:
			return false, unknown("count the group's rows", foreign(ref, rows))
		}
	}
	switch state {
	case running:
	case absent:
		// Nothing is loaded before the start, whatever becomes of this.
		if err := p.exec(ctx, p.create()); err != nil {
			return false, &loader.Error{Op: "create the pipeline", Applied: loader.No, Err: err, Hint: hint(err)}
		}
	default:
		if err := p.repair(ctx); err != nil {
			return false, unknown("repair the pipeline", err)
		}
	}
	if err := p.exec(ctx, p.start()); err != nil {
		return false, unknown("start the pipeline", err)
	}
	return true, nil
}

// repair prepares a stopped pipeline for another start: with credentials that have not expired, and without the memory
// of files that it has skipped.
func (p *pipe) repair(ctx context.Context) error {
	if err := p.exec(ctx, fmt.Sprintf("ALTER PIPELINE %s SET CREDENTIALS %s", quote(p.name), p.credentials())); err != nil {
		return err
	}
	files, err := p.files(ctx)
	if err != nil {
		return err
	}
	for name, state := range files {
		if state == fileSkipped {
			if err := p.exec(ctx, fmt.Sprintf("ALTER PIPELINE %s DROP FILE %s", quote(p.name), literal(name))); err != nil {
				return err
			}
		}
	}
	return nil
}

// wait polls until all members are loaded, or the pipeline stands still before they are. members are the last parts of
// their names: what PIPELINES_FILES shows before them differs between versions.
func (p *pipe) wait(ctx context.Context, members []string) error {
	for pause, before := 5*time.Millisecond, -1; ; pause = min(2*pause, time.Second) {
		// The state comes first: a pipeline that stands still has no more files to come.
		state, err := p.state(ctx)
		if err != nil {
			return unknown("look at the pipeline", err)
		}
		files, err := p.files(ctx)
		if err != nil {
			return unknown("look at the pipeline's files", err)
		}
		loaded, failed := 0, state != running
		for name, state := range files {
			failed = failed || state == fileSkipped
			if state == fileLoaded {
				loaded++
			}
			if !slices.Contains(members, path.Base(name)) {
				return unknown("look at the pipeline's files", fmt.Errorf("%s is no object of the group", name))
			}
		}
		if loaded != before {
			p.l.log.Debug("pipeline", "name", p.name, "loaded", loaded, "objects", len(members))
			before = loaded
		}
		if loaded == len(members) {
			return nil
		}
		progress := &pipelineError{name: p.name, state: strings.ToLower(state), loaded: loaded, members: len(members)}
		if failed {
			return p.failure(ctx, progress, loaded == 0 && state != running)
		}
		if err := sqlload.Wait(ctx, pause); err != nil {
			// An unreadable bucket shows only here: the pipeline finds no file, and goes on looking.
			ctx, cancel := afterwards(ctx)
			defer cancel()
			progress.messages = p.errors(ctx)
			return unknown("wait for the pipeline", fmt.Errorf("%w; %w", err, progress))
		}
	}
}

// failure stops the pipeline and returns the server's reason. early says that it stood still before its files were
// read, so nothing is applied.
func (p *pipe) failure(ctx context.Context, e *pipelineError, early bool) error {
	e.messages = p.errors(ctx)
	if err := p.stop(ctx); err != nil {
		e.messages = append(e.messages, "it cannot be stopped: "+err.Error())
	}
	failed := &loader.Error{Op: "load by pipeline", Err: e}
	if early {
		failed.Applied = loader.No
	}
	return failed
}

// afterwards is a context for cleaning up after ctx has ended.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// abandon stops the pipeline after ctx has ended: otherwise it would go on by itself, with credentials.
func (p *pipe) abandon(ctx context.Context) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	state, err := p.state(ctx)
	if err == nil && state == running {
		err = p.stop(ctx)
	}
	if err != nil {
		p.l.log.Warn("the pipeline may still be running, with its credentials: STOP PIPELINE "+quote(p.name), "error", err)
	}
}

// stop returns when the pipeline stands still: its last files are committed or rolled back by then.
func (p *pipe) stop(ctx context.Context) error {
	if err := p.exec(ctx, "STOP PIPELINE IF RUNNING "+quote(p.name)); err != nil {
		return err
	}
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		state, err := p.state(ctx)
		if err != nil || state != running {
			return err
		}
		if err := sqlload.Wait(ctx, pause); err != nil {
			return err
		}
	}
}

// drop removes the pipeline, its memory and the server's copy of the credentials. The group is in by now, so a failure
// is only logged.
func (p *pipe) drop(ctx context.Context) {
	if err := p.exec(ctx, dropPipeline(p.name)); err != nil {
		p.l.log.Warn("the pipeline is left behind, with its credentials: DROP PIPELINE "+quote(p.name), "error", err)
	}
}

func dropPipeline(name string) string { return "DROP PIPELINE IF EXISTS " + quote(name) }

// count counts the rows of the group's key range. The sort key lets the server skip all other segments.
func (p *pipe) count(ctx context.Context, ref loader.Ref) (n int64, err error) {
	found, err := p.l.rows(ctx, p.SelectCount(loader.KeyRange{First: ref.First, Last: ref.First + ref.Rows - 1}))
	if err == nil {
		n, err = sqlload.ParseNumber(found[0][0])
	}
	if err != nil {
		return 0, unknown("count the group's rows", err)
	}
	return n, nil
}

func foreign(ref loader.Ref, rows int64) error {
	return fmt.Errorf("group %s: %d rows of its %d keys from %d on are there", ref.ID, rows, ref.Rows, ref.First)
}

func unknown(op string, err error) error {
	return &loader.Error{Op: op, Applied: loader.Unknown, Err: err, Hint: hint(err)}
}

// pipelineError reports a pipeline that stopped early, and how far it came.
type pipelineError struct {
	name            string
	state           string
	loaded, members int
	messages        []string // the server's
}

func (e *pipelineError) Error() string {
	text := fmt.Sprintf("pipeline %s is %s with %d of %d objects loaded", e.name, e.state, e.loaded, e.members)
	if len(e.messages) > 0 {
		text += ": " + strings.Join(e.messages, "; ")
	}
	return text
}
