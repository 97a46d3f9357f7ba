package mysql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// pipe is one pipeline, with the statements about it (SingleStore manual, "Pipelines Commands" and "PIPELINES_FILES").
type pipe struct {
	statements
	name     string
	database string // that it belongs to; the table may be another's
	control  *sql.DB
	log      *slog.Logger

	folder string // of the group's objects within the bucket
	access objstore.Access
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

// ofRun tells whether a pipeline is one of the run's. Run a's group 1 is terapush_a_1, and the groups of run a-1 are
// terapush_a_1_….
func ofRun(pipeline, run string) bool {
	group, ours := strings.CutPrefix(pipeline, strings.TrimSuffix(pipelineName(batch.ID{Run: run}), "0"))
	_, err := strconv.ParseUint(group, 10, 63)
	return ours && err == nil
}

// create names fields and lines although they are LOAD DATA's defaults: the server keeps pipelines over an upgrade.
// There is no SKIP clause, so that a bad value or a duplicate key fails its file, and with STOP_ON_ERROR the pipeline.
func (p *pipe) create(folder string, a objstore.Access) string {
	config := map[string]string{"region": a.Region}
	if a.Endpoint != "" {
		config["endpoint_url"] = a.Endpoint
	}
	return fmt.Sprintf("CREATE PIPELINE %s AS LOAD DATA S3 %s CONFIG %s CREDENTIALS %s STOP_ON_ERROR ON INTO TABLE %s"+
		` FIELDS TERMINATED BY '\t' ENCLOSED BY '' ESCAPED BY '\\' LINES TERMINATED BY '\n' STARTING BY '' (%s)`,
		quote(p.name), literal(a.Bucket+"/"+folder), literal(object(config)), credentials(a),
		quote(p.statements.name.table), p.Columns(p.Schema))
}

func (p *pipe) renew(a objstore.Access) string {
	return fmt.Sprintf("ALTER PIPELINE %s SET CREDENTIALS %s", quote(p.name), credentials(a))
}

func credentials(a objstore.Access) string {
	keys := map[string]string{"aws_access_key_id": a.KeyID, "aws_secret_access_key": a.Secret.Reveal()}
	if a.Token != "" {
		keys["aws_session_token"] = a.Token.Reveal()
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
	_, err := p.control.ExecContext(ctx, statement)
	var said *mysql.MySQLError
	if errors.As(err, &said) {
		return &mysql.MySQLError{Number: said.Number, SQLState: said.SQLState, Message: p.access.Redact(said.Message)}
	}
	return err
}

// state is the pipeline's, or absent.
func (p *pipe) state(ctx context.Context) (state string, err error) {
	err = p.control.QueryRowContext(ctx, "SELECT state FROM information_schema.pipelines WHERE database_name = ? AND pipeline_name = ?",
		p.database, p.name).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return absent, nil
	}
	return state, err
}

// files are those that the pipeline has found so far, with their states.
func (p *pipe) files(ctx context.Context) (map[string]string, error) {
	list, err := p.control.QueryContext(ctx, "SELECT file_name, file_state FROM information_schema.pipelines_files"+
		" WHERE database_name = ? AND pipeline_name = ?", p.database, p.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Close() }()
	files := make(map[string]string)
	for list.Next() {
		var name, state string
		if err := list.Scan(&name, &state); err != nil {
			return nil, err
		}
		files[name] = state
	}
	return files, list.Err()
}

// errors are the newest of what the pipeline complains of.
func (p *pipe) errors(ctx context.Context) ([]string, error) {
	said, err := column[string](ctx, p.control, "SELECT error_message FROM information_schema.pipelines_errors"+
		" WHERE database_name = ? AND pipeline_name = ? ORDER BY error_unix_timestamp DESC LIMIT 3", p.database, p.name)
	for i := range said {
		said[i] = p.access.Redact(said[i])
	}
	return said, err
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
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// drop ends the pipeline, its memory and the server's copy of the credentials. The group is in by now: a pipeline that
// stays is for the user to drop, and no reason to load again.
func (p *pipe) drop(ctx context.Context) {
	if err := p.exec(ctx, "DROP PIPELINE IF EXISTS "+quote(p.name)); err != nil {
		p.log.Warn("the pipeline is left behind, with its credentials: DROP PIPELINE "+quote(p.name), "error", err)
	}
}

// complete tells, of a group without a pipeline, whether it is in.
func (p *pipe) complete(ctx context.Context, ref loader.Ref) (bool, error) {
	rows, err := p.count(ctx, ref)
	switch {
	case err != nil:
		return false, unknown("count the group's rows", err)
	case rows == ref.Rows:
		return true, nil
	case rows != 0:
		return false, unknown("count the group's rows", foreign(ref, rows))
	}
	return false, nil
}

func foreign(ref loader.Ref, rows int64) error {
	return fmt.Errorf("group %s: %d rows of its %d keys from %d on are there", ref.ID, rows, ref.Rows, ref.First)
}

// count counts the rows of the group's key range. The sort key lets the server pass over all other segments.
func (p *pipe) count(ctx context.Context, ref loader.Ref) (n int64, err error) {
	err = p.control.QueryRowContext(ctx, p.SelectCount(loader.KeyRange{First: ref.First, Last: ref.First + ref.Rows - 1})).Scan(&n)
	return n, err
}
