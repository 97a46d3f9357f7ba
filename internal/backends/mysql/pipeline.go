package mysql

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// pipe is one pipeline, with its statements (SingleStore manual, "Pipelines Commands" and "PIPELINES_FILES").
type pipe struct {
	statements
	options
	l      *opened
	name   string
	into   string // the table, without its database
	folder string // of the run's objects in the bucket
	access objstore.Access
}

// file is one of the pipeline's, as PIPELINES_FILES shows it.
type file struct {
	state string
	bytes string // when it was found
}

// The states of a pipeline and of a file that decide anything; others are Stopped, Error and Unloaded.
const (
	absent      = ""
	running     = "Running"
	fileLoaded  = "Loaded"
	fileSkipped = "Skipped"
)

// pipelineName is as unique as the run.
func pipelineName(run string) string { return "terapush_" + strings.ReplaceAll(run, "-", "_") }

// create names fields and lines although they are LOAD DATA's defaults: the server keeps pipelines over an upgrade.
// There is no SKIP clause, so a bad value or a duplicate key fails its file, and with STOP_ON_ERROR the pipeline.
func (p *pipe) create() string {
	config := map[string]string{"region": p.access.Region}
	if p.access.Endpoint != "" {
		config["endpoint_url"] = p.access.Endpoint
	}
	return fmt.Sprintf("CREATE PIPELINE %s AS LOAD DATA S3 %s CONFIG %s CREDENTIALS %s BATCH_INTERVAL %d STOP_ON_ERROR ON"+
		" INTO TABLE %s"+` FIELDS TERMINATED BY '\t' ENCLOSED BY '' ESCAPED BY '\\' LINES TERMINATED BY '\n' STARTING BY '' (%s)`,
		quote(p.name), literal(p.access.Bucket+"/"+p.folder), jsonLiteral(config), p.credentials(), p.BatchInterval,
		quote(p.into), p.Columns(p.Schema))
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

// exec runs a statement that may hold credentials.
func (p *pipe) exec(ctx context.Context, statement string) error {
	_, err := p.l.control.ExecContext(ctx, statement)
	return mysqlconn.Redacted(err, p.access.Redact)
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

// filesOf is the condition for the files of members, whose names sort like their numbers. A long run has more files
// than should be read at every look.
func filesOf(members []string) string {
	return " AND SUBSTRING_INDEX(file_name, '/', -1) BETWEEN " + literal(members[0]) + " AND " + literal(members[len(members)-1])
}

// files are those of members that the pipeline has found so far, by their names without folders.
func (p *pipe) files(ctx context.Context, members []string) (map[string]file, error) {
	found, err := p.query(ctx, "file_name, file_state, file_size", "pipelines_files", filesOf(members))
	files := make(map[string]file, len(found))
	for _, row := range found {
		files[path.Base(row[0])] = file{state: row[1], bytes: row[2]}
	}
	return files, err
}

// progress counts the files that are loaded. skipped reports whether one cannot be.
func progress(files map[string]file) (loaded int, skipped bool) {
	for _, f := range files {
		if f.state == fileLoaded {
			loaded++
		}
		skipped = skipped || f.state == fileSkipped
	}
	return loaded, skipped
}

// errors are the pipeline's newest.
func (p *pipe) errors(ctx context.Context) []string {
	found, err := p.query(ctx, "error_message", "pipelines_errors", " ORDER BY error_unix_timestamp DESC LIMIT 3")
	if err != nil {
		return []string{"its errors cannot be read: " + loader.Explain(err)}
	}
	messages := firsts(found)
	for i := range messages {
		messages[i] = p.access.Redact(messages[i])
	}
	return messages
}

// repair prepares the pipeline for another start: it stands still then, with credentials that have not expired, and
// without the memory of files that it has skipped.
func (p *pipe) repair(ctx context.Context) error {
	if err := p.stop(ctx); err != nil {
		return err
	}
	if err := p.exec(ctx, fmt.Sprintf("ALTER PIPELINE %s SET CREDENTIALS %s", quote(p.name), p.credentials())); err != nil {
		return err
	}
	skipped, err := p.query(ctx, "file_name", "pipelines_files", " AND file_state = "+literal(fileSkipped))
	if err != nil {
		return err
	}
	for _, name := range firsts(skipped) {
		if err := p.exec(ctx, fmt.Sprintf("ALTER PIPELINE %s DROP FILE %s", quote(p.name), literal(name))); err != nil {
			return err
		}
	}
	return nil
}

// Pauses between two looks at a pipeline that runs.
const (
	pipePause    = 5 * time.Millisecond
	pipeMaxPause = time.Second
)

// wait polls until all members are loaded, or the pipeline stands still before they are.
func (p *pipe) wait(ctx context.Context, members []string) (map[string]file, error) {
	var stands *pipelineError // when it was last looked at
	before := -1
	for range sqlload.Poll(ctx, pipePause, pipeMaxPause) {
		// The state comes first: a pipeline that stands still has no more files to come.
		state, err := p.state(ctx)
		if err != nil {
			return nil, p.lost(ctx, "look at the pipeline", stands, err)
		}
		files, err := p.files(ctx, members)
		if err != nil {
			return nil, p.lost(ctx, "look at the pipeline's files", stands, err)
		}
		loaded, skipped := progress(files)
		if loaded != before {
			p.l.log.Debug("pipeline", "name", p.name, "loaded", loaded, "objects", len(members))
			before = loaded
		}
		if loaded == len(members) {
			return files, nil
		}
		stands = &pipelineError{name: p.name, state: strings.ToLower(state), loaded: loaded, members: len(members)}
		if skipped || state != running {
			return nil, p.failure(ctx, stands, loaded == 0 && state != running)
		}
	}
	return nil, p.lost(ctx, "wait for the pipeline", stands, ctx.Err())
}

// lost is the error of a pipeline that is not waited for any longer. An unreadable bucket shows only here: the pipeline
// finds no file, and goes on looking.
func (p *pipe) lost(ctx context.Context, op string, stands *pipelineError, err error) error {
	if ctx.Err() == nil || stands == nil {
		return unknown(op, err)
	}
	later, cancel := afterwards(ctx)
	defer cancel()
	stands.messages = p.errors(later)
	return unknown(op, fmt.Errorf("%w; %w", err, stands))
}

// failure stops the pipeline and returns the server's reason. early says that it stood still before its files were
// read, so nothing is applied.
func (p *pipe) failure(ctx context.Context, e *pipelineError, early bool) error {
	e.messages = p.errors(ctx)
	if err := p.stop(ctx); err != nil {
		e.messages = append(e.messages, "it cannot be stopped: "+loader.Explain(err))
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

// stop returns when the pipeline stands still: its last files are committed or rolled back by then.
func (p *pipe) stop(ctx context.Context) error {
	if err := p.exec(ctx, "STOP PIPELINE IF RUNNING "+quote(p.name)); err != nil {
		return err
	}
	for range sqlload.Poll(ctx, pipePause, pipeMaxPause) {
		state, err := p.state(ctx)
		if err != nil || state != running {
			return err
		}
	}
	return ctx.Err()
}

func dropPipeline(name string) string { return "DROP PIPELINE IF EXISTS " + quote(name) }

// countOf counts the rows of a group's key range. The sort key lets the server skip all other segments.
func (p *pipe) countOf(group loader.Ref) string {
	return p.SelectCount(loader.KeyRange{First: group.First, Last: group.First + group.Rows - 1})
}

// count asks countOf.
func (p *pipe) count(ctx context.Context, ref loader.Ref) (n int64, err error) {
	found, err := p.l.rows(ctx, p.countOf(ref))
	if err == nil {
		n, err = sqlload.ParseNumber(found[0][0])
	}
	if err != nil {
		return 0, unknown("count the group's rows", err)
	}
	return n, nil
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
