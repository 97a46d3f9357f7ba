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

// pipe is one pipeline, with the statements about it (SingleStore manual, "Pipelines Commands" and "PIPELINES_FILES").
type pipe struct {
	statements
	l      *opened // nil for Explain
	name   string
	into   string // the table, without its database
	folder string // of the group's objects within the bucket
	access objstore.Access
	known  bool // the contract wants groups recognised that are in already
}

// The states of a pipeline and of a file that decide anything; others are Stopped, Error and Unloaded.
const (
	absent      = ""
	running     = "Running"
	fileLoaded  = "Loaded"
	fileSkipped = "Skipped"
)

// pipelineName is unique for ever, as the run is.
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
// There is no SKIP clause, so that a bad value or a duplicate key fails its file, and with STOP_ON_ERROR the pipeline.
func (p *pipe) create() string {
	config := map[string]string{"region": p.access.Region}
	if p.access.Endpoint != "" {
		config["endpoint_url"] = p.access.Endpoint
	}
	return fmt.Sprintf("CREATE PIPELINE %s AS LOAD DATA S3 %s CONFIG %s CREDENTIALS %s STOP_ON_ERROR ON INTO TABLE %s"+
		` FIELDS TERMINATED BY '\t' ENCLOSED BY '' ESCAPED BY '\\' LINES TERMINATED BY '\n' STARTING BY '' (%s)`,
		quote(p.name), literal(p.access.Bucket+"/"+p.folder), literal(object(config)), p.credentials(), quote(p.into),
		p.Columns(p.Schema))
}

func (p *pipe) start() string { return "START PIPELINE IF NOT RUNNING " + quote(p.name) }

func (p *pipe) credentials() string {
	keys := map[string]string{"aws_access_key_id": p.access.KeyID, "aws_secret_access_key": p.access.Secret.Reveal()}
	if p.access.Token != "" {
		keys["aws_session_token"] = p.access.Token.Reveal()
	}
	return literal(object(keys))
}

// object writes a JSON object, keys in order.
func object(fields map[string]string) string {
	text, _ := json.Marshal(fields) // strings cannot fail
	return string(text)
}

// exec says a statement that may hold credentials. A server quotes what it does not understand, so that no error of it
// goes on as it came.
func (p *pipe) exec(ctx context.Context, statement string) error {
	_, err := p.l.control.ExecContext(ctx, statement)
	var said *mysql.MySQLError
	if errors.As(err, &said) {
		return &mysql.MySQLError{Number: said.Number, SQLState: said.SQLState, Message: p.access.Redact(said.Message)}
	}
	return err
}

// about is the condition on what information_schema knows of the pipeline.
func (p *pipe) about() string {
	return " WHERE database_name = " + literal(p.l.target.Database) + " AND pipeline_name = " + literal(p.name)
}

// state is the pipeline's, or absent.
func (p *pipe) state(ctx context.Context) (string, error) {
	found, err := p.l.rows(ctx, "SELECT state FROM information_schema.pipelines"+p.about())
	if err != nil || len(found) == 0 {
		return absent, err
	}
	return found[0][0], nil
}

// files are those that the pipeline has found so far, with their states.
func (p *pipe) files(ctx context.Context) (map[string]string, error) {
	found, err := p.l.rows(ctx, "SELECT file_name, file_state FROM information_schema.pipelines_files"+p.about())
	files := make(map[string]string, len(found))
	for _, row := range found {
		files[row[0]] = row[1]
	}
	return files, err
}

// errors are the newest of what the pipeline complains of.
func (p *pipe) errors(ctx context.Context) []string {
	found, err := p.l.rows(ctx, "SELECT error_message FROM information_schema.pipelines_errors"+p.about()+
		" ORDER BY error_unix_timestamp DESC LIMIT 3")
	if err != nil {
		return []string{"its errors cannot be read: " + err.Error()}
	}
	said := firsts(found)
	for i := range said {
		said[i] = p.access.Redact(said[i])
	}
	return said
}

// begin makes the pipeline, or mends the one that an earlier attempt has left, and starts it. false: the group is in.
func (p *pipe) begin(ctx context.Context, ref loader.Ref) (bool, error) {
	state, err := p.state(ctx)
	if err != nil {
		return false, unknown("look for the pipeline", err)
	}
	if state == absent && p.known { // it was never begun, or is complete
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
		if err := p.mend(ctx); err != nil {
			return false, unknown("mend the pipeline", err)
		}
	}
	if err := p.exec(ctx, p.start()); err != nil {
		return false, unknown("start the pipeline", err)
	}
	return true, nil
}

// mend prepares a pipeline that stands still for another start: with credentials that have not expired, and without
// the memory of the files that it has given up.
func (p *pipe) mend(ctx context.Context) error {
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

// wait looks at the files until all members are loaded, or the pipeline stands still before they are. members are the last
// parts of their names: what PIPELINES_FILES says before them differs between versions.
func (p *pipe) wait(ctx context.Context, members []string) error {
	for pause, before := 5*time.Millisecond, -1; ; pause = min(2*pause, time.Second) {
		// The state is asked for first: a pipeline that stands still has no file to come.
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
				return unknown("look at the pipeline's files", fmt.Errorf("it has found %s, which is no object of the group", name))
			}
		}
		if loaded != before {
			p.l.log.Debug("pipeline", "name", p.name, "loaded", loaded, "objects", len(members))
			before = loaded
		}
		so := &pipelineError{name: p.name, state: strings.ToLower(state), loaded: loaded, members: len(members)}
		if loaded == len(members) {
			return nil
		}
		if failed {
			return p.failure(ctx, so, loaded == 0 && state != running)
		}
		if err := sqlload.Wait(ctx, pause); err != nil {
			// A bucket that it cannot read shows only here: it finds no file, and goes on looking.
			ctx, cancel := afterwards(ctx)
			defer cancel()
			so.said = p.errors(ctx)
			return unknown("wait for the pipeline", fmt.Errorf("%w; %w", err, so))
		}
	}
}

// failure stops the pipeline and tells why it did not come to its end, in the server's words. early says that it stood
// still before its files were looked at.
func (p *pipe) failure(ctx context.Context, so *pipelineError, early bool) error {
	so.said = p.errors(ctx)
	if err := p.stop(ctx); err != nil {
		so.said = append(so.said, "it cannot be stopped: "+err.Error())
	}
	failed := &loader.Error{Op: "load by pipeline", Err: so}
	if early {
		failed.Applied = loader.No
	}
	return failed
}

// afterwards is a little time for what has to be done although ctx has ended.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// abandon stops the pipeline although ctx has ended: it runs on the server by itself, with credentials, and nobody may
// come back to it.
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

// stop returns when the pipeline stands still: what it was at is committed or rolled back by then.
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

// drop ends the pipeline, its memory and the server's copy of the credentials. The group is in by now: a pipeline that
// stays is for the user to drop, and no reason to load again.
func (p *pipe) drop(ctx context.Context) {
	if err := p.exec(ctx, dropPipeline(p.name)); err != nil {
		p.l.log.Warn("the pipeline is left behind, with its credentials: DROP PIPELINE "+quote(p.name), "error", err)
	}
}

func dropPipeline(name string) string { return "DROP PIPELINE IF EXISTS " + quote(name) }

// count counts the rows of the group's key range. The sort key lets the server pass over all other segments.
func (p *pipe) count(ctx context.Context, ref loader.Ref) (n int64, err error) {
	found, err := p.l.rows(ctx, p.SelectCount(loader.KeyRange{First: ref.First, Last: ref.First + ref.Rows - 1}))
	if err == nil {
		n, err = strconv.ParseInt(found[0][0], 10, 64)
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

// pipelineError says how far a pipeline came that did not come to its end.
type pipelineError struct {
	name            string
	state           string
	loaded, members int
	said            []string
}

func (e *pipelineError) Error() string {
	text := fmt.Sprintf("pipeline %s is %s with %d of %d objects loaded", e.name, e.state, e.loaded, e.members)
	if len(e.said) > 0 {
		text += ": " + strings.Join(e.said, "; ")
	}
	return text
}
