package oracle

import (
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Where the changes are logged, and how the rows of a transaction can be taken back.
const (
	selectLogMode = "SELECT d.log_mode, d.force_logging FROM v$database d"
	selectLogs    = "SELECT TO_CHAR(COUNT(*)), TO_CHAR(MIN(l.bytes)) FROM v$log l"
	selectUndo    = "SELECT TO_CHAR(SUM(GREATEST(f.bytes, f.maxbytes))) FROM dba_data_files f WHERE f.tablespace_name = (SELECT p.value FROM v$parameter p WHERE p.name = 'undo_tablespace')"
	selectArea    = "SELECT TO_CHAR(a.total_size), TO_CHAR(a.free_space), TO_CHAR(a.num_writes) FROM v$memoptimize_write_area a"
)

// redo is the ceiling of every insert but direct ones. A managed service sizes it itself.
func (x *examination) redo(ctx context.Context) ([]loader.Finding, error) {
	if x.managed() {
		return nil, nil
	}
	mode, refused, err := x.ask(ctx, selectLogMode)
	if err != nil {
		return nil, err
	}
	all := x.hidden("archive log", "whether redo is archived, and forced,", "V_$DATABASE", refused)
	if len(mode) == 1 {
		all = []loader.Finding{archiveFinding(mode[0][0], mode[0][1], x.method)}
	}
	logs, refused, err := x.ask(ctx, selectLogs)
	switch {
	case err != nil:
		return nil, err
	case refused != "" || len(logs) != 1:
		return append(all, x.hidden("redo logs", "number and size of the redo logs", "V_$LOG", refused)...), nil
	}
	groups, count := parseInt(logs[0][0])
	size, bytes := parseInt(logs[0][1])
	if count == nil && bytes == nil && groups > 0 && size > 0 {
		all = append(all, redoFinding(groups, size, x.intent.TotalBytes))
	}
	return all, nil
}

func archiveFinding(mode, forced, method string) loader.Finding {
	f := loader.Finding{Check: "archive log", Grade: loader.GradeOK, Found: fmt.Sprintf("%s, force logging %s", mode, forced)}
	switch {
	case method == methodDirect && strings.EqualFold(forced, "YES"):
		f.Grade, f.Fix = loader.GradeWarn, "ALTER DATABASE NO FORCE LOGGING, where no standby needs it; then ALTER TABLE … NOLOGGING"
		f.Found += ": direct path writes every block into the redo log as well"
	case mode == "ARCHIVELOG":
		f.Found += ": the archive grows by at least the rows"
	}
	return f
}

// A log of which the groups are filled this often during a run, and that is smaller than this, makes loads wait: each
// round has to wait for the checkpoint, and the archiver, of the one before.
const (
	manyRounds = 10
	smallLog   = 1 << 30
)

func redoFinding(groups, size, total int64) loader.Finding {
	f := loader.Finding{Check: "redo logs", Grade: loader.GradeOK, Found: fmt.Sprintf("%d groups of at least %s", groups, sized(size))}
	if total <= 0 {
		return f
	}
	rounds := total / (groups * size)
	f.Found += fmt.Sprintf(", which %s of rows fill %d times over", sized(total), rounds)
	if rounds > manyRounds && size < smallLog {
		f.Grade = loader.GradeWarn
		f.Found += ": loads wait at each switch until a log is free (\"log file switch\" in V$SESSION_EVENT)"
		f.Fix = "ALTER DATABASE ADD LOGFILE SIZE 4G (four times), ALTER SYSTEM SWITCH LOGFILE, then ALTER DATABASE DROP LOGFILE GROUP … for the small ones"
	}
	return f
}

// undo compares the room for undo with the transactions that are open at a time. Inserts need far less of it than their
// rows, as an insert is undone by its row's address.
func (x *examination) undo(ctx context.Context) ([]loader.Finding, error) {
	const check = "undo"
	if x.managed() || x.method == methodDirect {
		return nil, nil
	}
	found, refused, err := x.ask(ctx, selectUndo)
	if err != nil || refused != "" {
		return x.hidden(check, "the size of the undo tablespace", "DBA_DATA_FILES", refused), err
	}
	f := loader.Finding{Check: check, Grade: loader.GradeUnknown, Found: "no data file of the undo tablespace is listed"}
	size := int64(0)
	if len(found) == 1 {
		size, _ = parseInt(found[0][0]) // "" where there is none
	}
	if size == 0 {
		return []loader.Finding{f}, nil
	}
	f.Grade, f.Found = loader.GradeOK, fmt.Sprintf("the undo tablespace may grow to %s", sized(size))
	if open := x.workers() * x.intent.BatchBytes; open > size {
		f.Grade, f.Fix = loader.GradeWarn, "ALTER TABLESPACE … ADD DATAFILE SIZE 4G AUTOEXTEND ON; or --batch-bytes lower"
		f.Found += fmt.Sprintf(", and batches of %s are open at a time (ORA-30036)", sized(open))
	}
	return []loader.Finding{f}, nil
}

// fast looks at the memory of Fast Ingest, and whether its hint is heeded.
func (x *examination) fast(ctx context.Context) ([]loader.Finding, error) {
	const check = "fast ingest"
	if x.method != methodFast {
		return nil, nil
	}
	found, refused, err := x.ask(ctx, selectArea)
	if err != nil || refused != "" {
		return x.hidden(check, "the memory of Fast Ingest", "V_$MEMOPTIMIZE_WRITE_AREA", refused), err
	}
	f := loader.Finding{Check: check, Grade: loader.GradeOK, Found: "its memory is taken from the large pool with the first row"}
	if len(found) == 0 {
		return []loader.Finding{f}, nil
	}
	total, _ := parseInt(found[0][0])
	free, _ := parseInt(found[0][1])
	if total == 0 {
		return []loader.Finding{f}, nil
	}
	f.Found = fmt.Sprintf("%s of %s are free, %s writes are not on disk yet", sized(free), sized(total), found[0][2])
	if free < total/10 {
		f.Grade, f.Fix = loader.GradeWarn, "EXEC DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; or a larger MEMOPTIMIZE_WRITE_AREA_SIZE (LARGE_POOL_SIZE before 26ai)"
		f.Found += ": inserts wait until it is written"
	}
	return []loader.Finding{f}, nil
}
