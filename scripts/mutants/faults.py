"""Small faults in the product's code, each of which could cost a user rows, a secret or the truth.

A fault is id, package, file in the package, old text, new text and what it does. The old text stands in the file once.
run.py says which test catches each.
"""
from typing import NamedTuple

PG, MY, DO = "internal/backends/postgres", "internal/backends/mysql", "internal/backends/doris"
DB, OR, S3 = "internal/backends/databend", "internal/backends/oracle", "internal/backends/s3"
SL, OS, EN = "internal/sqlload", "internal/objstore", "internal/engine"
RT = "internal/engine/retry"
VE, RL, PU, FE = "internal/verify", "internal/runlog", "internal/push", "internal/feed"
NI, HL, PL, PB = "internal/netio", "internal/httpload", "pkg/loader", "pkg/batch"


class Fault(NamedTuple):
    id: str
    package: str
    file: str
    old: str
    new: str
    what: str


FAULTS = [Fault(*f) for f in [
    # ---- postgres
    ("pg01", PG, "statements.go", '+ " ON CONFLICT DO NOTHING"', '+ ""',
     "a second claim of a batch is an error of a duplicate key, not 'taken'"),
    ("pg02", PG, "session.go", 'tag != "COMMIT"', 'tag == ""',
     "COMMIT of a failed transaction, answered with ROLLBACK, counts as applied"),
    ("pg03", PG, "claims.go", '+"; ROLLBACK")', '+"; COMMIT")',
     "Resolve leaves its own claim behind: the batch counts as applied without rows"),
    ("pg04", PG, "claims.go", "s.loading.Load() != ref.ID.Number", "s.loading.Load() == ref.ID.Number",
     "Resolve ends the sessions of other batches and spares the one that loads this batch"),
    ("pg05", PG, "claims.go", "if left == 0 {", "if left >= 0 {",
     "Resolve does not wait until ended sessions are gone"),
    ("pg06", PG, "s3.go", "*text = a.Redact(*text)", "_ = a.Redact(*text)",
     "a server's error shows the object store's secret key"),
    ("pg07", PG, "copy.go", "s.conn.Conn().SetDeadline(time.Unix(1, 0))", "s.conn.Conn().SetReadDeadline(time.Unix(1, 0))",
     "the end of the context does not reach a write that blocks"),
    ("pg08", PG, "faults.go", "f.Applied, f.SessionDead = loader.Unknown, true", "f.SessionDead = true",
     "FATAL between a commit and its answer counts as not applied"),
    ("pg09", PG, "s3.go", "rows += n", "rows = n",
     "s3-import: the rows of a group's earlier objects are not counted"),
    ("pg10", PG, "redshift.go", '[...]string{"BEGIN", lockClaims(s)}', '[...]string{"BEGIN"}',
     "Redshift: the claim is looked for without the lock on the claim table"),
    ("pg11", PG, "claims.go", 'begin := "BEGIN ISOLATION LEVEL SERIALIZABLE"', 'begin := "BEGIN"',
     "two runs that append reserve the same keys"),

    # ---- mysql
    ("my01", MY, "session.go", "\twarnings, err = s.warnings(ctx)\n\treturn rows, warnings, err\n", "\treturn rows, nil, nil\n",
     "SHOW WARNINGS is left out before the commit: changed values go unnoticed"),
    ("my02", MY, "claims.go", '+" FOR UPDATE"', '+""',
     "Resolve does not wait for an uncommitted claim and says 'not applied'"),
    ("my03", MY, "claims.go", '_, _ = c.Exec(ctx, "ROLLBACK")', "_ = ctx",
     "Resolve's transaction stays open on a pooled connection, with its locks"),
    ("my04", MY, "session.go", "autocommit(!s.claims)", "autocommit(true)",
     "claim and rows commit one by one"),
    ("my05", MY, "claims.go", 'if _, err := c.Exec(ctx, "KILL "+id); err != nil', 'if _, err := c.Exec(ctx, "DO "+id); err != nil',
     "Resolve does not kill the sessions that it finds"),
    ("my06", MY, "coalesce.go", "_, c.broken = c.Conn.Write(c.buf)", "_, _ = c.Conn.Write(c.buf)",
     "a failed write of gathered bytes is dropped"),
    ("my07", MY, "coalesce.go", "len(c.buf) <= quitBytes", "len(c.buf) <= coalesceBytes",
     "closing sends the part of a statement that was gathered"),
    ("my08", MY, "faults.go", "9001 9002 9005\", Verdict: loader.Lost(", "9001 9002 9005\", Verdict: loader.Reconnect(",
     "a lost connection counts as not applied"),
    ("my09", MY, "pipe.go", "Message: p.access.Redact(server.Message)", "Message: server.Message",
     "a pipeline's error shows the object store's secret key"),
    ("my10", MY, "hold.go", "return got == fmt.Sprint(slots-1), err", 'return got != "", err',
     "an exclusive run takes a table that sharing runs hold"),
    ("my11", MY, "pipe.go", "if loaded == len(members) {", "if loaded >= len(members)-1 {",
     "a pipeline is taken for complete one object too early"),
    ("my12", MY, "pipeline.go", "f.bytes != strconv.FormatInt(bytes, 10)", "f.bytes == strconv.Itoa(-1)",
     "a pipeline that loaded what a broken PUT left goes unnoticed"),
    ("my13", MY, "pipeline.go", "\t\terr = pipe.stop(ctx)\n", "\t\terr = nil\n",
     "Resolve judges while the pipeline may still load"),
    ("my14", MY, "pipeline.go", "case objects > 0:", "case objects < 0:",
     "a second pipeline loads the objects again that a lost one has loaded"),

    # ---- doris
    ("do01", DO, "answer.go", 'case s.label != "" && a.Label != s.label:', 'case s.label != "" && a.Label == "":',
     "a label that the server has replaced goes unnoticed"),
    ("do02", DO, "answer.go", ' && a.ExistingJobStatus == "FINISHED" && s.label != ""', ' && s.label != ""',
     "a label whose load still runs counts as applied"),
    ("do03", DO, "answer.go", "read != s.rows {", "read > s.rows {",
     "a load that read fewer rows than were sent is accepted"),
    ("do04", DO, "labels.go", "case !l.caps.Staged && (state ==", "case (state ==",
     "a group that loaded some of its objects counts as applied"),
    ("do05", DO, "labels.go", "if err == nil && state.running() {", "if err != nil && state.running() {",
     "Resolve does not cancel an abandoned load"),
    ("do06", DO, "http.go", "\tto = from.ResolveReference(to)\n\tto.User = nil\n", "\tto = from.ResolveReference(to)\n",
     "user and password of a redirect stay in the address that errors show"),
    ("do07", DO, "http.go", 'if encrypted && from.Scheme == "https"', 'if !encrypted && from.Scheme == "https"',
     "a redirect from https to http is followed, with the password"),
    ("do08", DO, "http.go", "if to.Scheme == be.Scheme && to.Host == be.Host {", "if to.Scheme == be.Scheme {",
     "the password goes to whatever host an answer's ErrorURL names"),
    ("do09", DO, "s3.go", "err != nil || !there {", 'err != nil || !there && names[i] == "" {',
     "s3-load: a group that lacks an object is committed all the same"),
    ("do10", DO, "s3.go", "clean.Message = a.Redact(clean.Message)", "_ = a.Redact(clean.Message)",
     "a server's error shows the object store's secret key"),
    ("do11", DO, "prepared.go", "p.statement == nil || p.rows != n", "p.statement == nil",
     "a shorter batch is sent with the statement of a longer one"),
    ("do12", DO, "loader.go", "l.altered = true", "l.altered = false",
     "every session alters the table"),
    ("do13", DO, "loader.go", "l.caps.MaxBytes /= parameterGrowth", "l.caps.MaxBytes /= 1",
     "a prepared INSERT becomes longer than a packet may be"),

    # ---- databend
    ("db01", DB, "labels.go", "k, id.Run, id.Number, attempt))", "k, id.Run, id.Number, 1))",
     "the query id lacks the attempt: the server repeats the first answer and runs nothing"),
    ("db02", DB, "kill.go", "grace == 0 || time.Since(since) < grace", "grace != 0 && time.Since(since) < grace",
     "a COPY or INSERT that may be committing is not awaited"),
    ("db03", DB, "kill.go", "if len(down) == len(l.hosts) {", "if len(down) > len(l.hosts) {",
     "with no host reachable, earlier attempts count as ended"),
    ("db04", DB, "resolve.go", "k, ref.ID, max(ref.Attempt, 1)); err", "k, ref.ID, max(ref.Attempt-1, 1)); err",
     "the newest attempt is not ended before the rows are counted"),
    ("db05", DB, "resolve.go", "!= loader.DedupKey || !ours {", "!= loader.DedupKey && !ours {",
     "rows in a table of others are deleted"),
    ("db06", DB, "resolve.go", "case loader.Yes:\n\t\tif again {", "case loader.Yes:\n\t\tif again || found > 0 {",
     "rows that this run never sent count as this run's"),
    ("db07", DB, "stage.go", "len(wrong) == 0 && sum == g.Rows", "len(wrong) == 0 || sum == g.Rows",
     "COPY's count is accepted although files are wrong"),
    ("db08", DB, "streaming.go", '\tr.Header.Set("Expect", "100-continue")\n', "",
     "rows are sent before the query is listed"),
    ("db09", DB, "streaming.go", "if s.node.kill(limit, t.queryID) == nil {", "if limit.Err() == nil {",
     "a cancelled load's query is not killed before its connection closes"),
    ("db10", DB, "query.go", "\tcase err != nil:\n\t\treturn nil, &lostError{err}", "\tcase err != nil:\n\t\treturn nil, err",
     "a refusal to answer for a running statement counts as the statement's failure"),
    ("db11", DB, "connect.go", 'if !strings.HasPrefix(path, "/") {', 'if strings.TrimSpace(path) == "" {',
     "credentials go to the host that an answer's next_uri names"),
    ("db12", DB, "stage.go", "err == nil && size != int64(len(b.Encoded))", "err == nil && size < 0",
     "an upload that broke and was written later is not noticed"),

    # ---- oracle
    ("or01", OR, "guard.go", "\tif c.open.Load() {\n\t\tc.closeSocket()", "\tif c.open.Load() && c.broken.Load() {\n\t\tc.closeSocket()",
     "closing logs off with an open transaction, which commits it"),
    ("or02", OR, "guard.go", "err = driverPanic{p}", "_ = driverPanic{p}",
     "a panic of the driver counts as success"),
    ("or03", OR, "claims.go", "loader.Resolution{Applied: loader.No}, k.rollback(ctx)", "loader.Resolution{Applied: loader.No}, k.commit(ctx)",
     "Resolve leaves its own claim behind: the batch counts as applied without rows"),
    ("or04", OR, "claims.go", "_, err = k.exec(ctx, st.lockTable())", "_ = st.lockTable()",
     "single: rows are counted while an earlier attempt may still commit some"),
    ("or05", OR, "claims.go", "if _, err := k.exec(ctx, l.statements(s).lockClaims()); err != nil {", "if err := ctx.Err(); err != nil {",
     "two runs that append reserve the same keys"),
    ("or06", OR, "session.go", "|| ok && rolledBack(number) {", "|| ok && number > 0 {",
     "any error of COMMIT counts as not applied"),
    ("or07", OR, "session.go", "&loader.Error{Op: op, Applied: loader.Unknown, Err: err}", "&loader.Error{Op: op, Applied: loader.No, Err: err}",
     "single: a batch whose first rows are committed is reported as not applied"),
    ("or08", OR, "session.go", "err == nil && n != 1 {", "err == nil && n > 1 {",
     "single: a row that the server did not take goes unnoticed"),
    ("or09", OR, "bind.go", "slices.Contains(values, yearOne/unit)", "slices.Contains(values, yearOne)",
     "a date of the year 1 is bound as NULL"),
    ("or10", OR, "bind.go", "a.args = append(a.args, v.Ints[c.From:])", "a.args = append(a.args, v.Ints)",
     "rows that are in already are bound again, beside other rows' texts"),
    ("or11", OR, "finish.go", "now >= highest {", "now > 0 {",
     "fast: the run ends while rows are still in the server's memory"),

    # ---- s3, discard
    ("s301", S3, "loader.go", "if holds {", "if holds || err == nil {",
     "Resolve calls a batch applied that has no object"),
    ("s302", S3, "loader.go", "if p.Silent || p.Resume {", "if p.Silent || p.Resume || p.Create != loader.CreateNever {",
     "a new run does not look whether its folder is empty"),
    ("s303", S3, "loader.go", "p.Create == loader.CreateRecreate || p.Create == loader.CreateTruncate", "p.Create == loader.CreateRecreate",
     "--create truncate is accepted and empties nothing"),
    ("s304", S3, "loader.go", "total += found.Bytes", "total = found.Bytes",
     "the report's stored bytes are those of one object"),
    ("di01", "internal/backends/discard", "discard.go", "defer body.Close()", "_ = body.Close",
     "the buffer never returns to the ring"),
    ("di02", "internal/backends/discard", "discard.go", "errors.Is(err, io.EOF) {", "err == nil || errors.Is(err, io.EOF) {",
     "a batch is acknowledged after its first piece"),

    # ---- sqlload
    ("sl01", SL, "load.go", '''		taken, rows, err := c.Claim(ctx, ref)
		switch {
		case err != nil:
			return Sent{}, err
		case taken:
			_ = c.Rollback(ctx) // nothing to undo; the next statement reports a broken session
			return Sent{Taken: true, Rows: rows}, nil
		}
		s.Claimed = true
		s.Rows, s.Warnings, err = put(ctx)
		return s, err
''', '''		s.Rows, s.Warnings, err = put(ctx)
		s.Claimed = true
		if err != nil {
			return s, err
		}
		taken, rows, err := c.Claim(ctx, ref)
		switch {
		case err != nil:
			return Sent{}, err
		case taken:
			_ = c.Rollback(ctx) // nothing to undo; the next statement reports a broken session
			return Sent{Taken: true, Rows: rows}, nil
		}
		return s, err
''',
     "the claim comes after the rows"),
    ("sl02", SL, "load.go", "if s.Rows == want && len(s.Warnings) == 0 {", "if s.Rows == want {",
     "a load with warnings is committed"),
    ("sl03", SL, "load.go", "if s.Rows == want && len(s.Warnings) == 0 {", "if s.Rows >= 0 && len(s.Warnings) == 0 {",
     "a load that lacks rows is committed"),
    ("sl04", SL, "load.go", 'loader.Mark("commit", loader.Unknown, err)', 'loader.Mark("commit", loader.No, err)',
     "a lost answer to COMMIT counts as not applied"),
    ("sl05", SL, "load.go", "\t_ = c.Rollback(ctx)\n\treturn &loader.Error{Op: op,", "\treturn &loader.Error{Op: op,",
     "a failed load is not rolled back: the next batch joins its transaction"),
    ("sl06", SL, "claims.go", "case rows != ref.Rows:\n\t\treturn loader.Resolution{Reason:", "case rows > ref.Rows:\n\t\treturn loader.Resolution{Reason:",
     "a claim with fewer rows than the batch counts as applied"),
    ("sl07", SL, "claims.go", "last != ref.First+n-1:", "last > ref.First+ref.Rows-1:",
     "rows in the middle of a batch's keys are taken for its first rows"),
    ("sl08", SL, "probe.go", "if sent == nil && rows == 1 {", "if rows == 1 {",
     "the probe deletes a row of another application"),
    ("sl09", SL, "statements.go", "COALESCE(%s, -1) + 1 FROM", "COALESCE(%s, -1) FROM",
     "--append begins at the last key that is taken"),
    ("sl10", SL, "mysql.go", "return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true", "return loader.Fault{Verdict: loader.Reconnect(loader.ClassConnection)}, true",
     "a connection that broke during a statement counts as not applied"),
    ("sl11", SL, "prepare.go", "case s.Want.Resume:\n", "case s.Want.Resume && s.Want.Silent:\n",
     "a resume makes a missing claim table: every batch looks lost and is sent again"),
    ("sl12", SL, "prepare.go", "return found, t.mayRemove(s, found)", "return found, nil",
     "--create recreate drops a table that terapush has not made"),

    # ---- objstore
    ("os01", OS, "run.go", "if b.Attempt > 1 {", "if b.Attempt > 2 {",
     "an object that is put again is not measured"),
    ("os02", OS, "run.go", "return head.Metadata[metadata] == describe(ref.First, ref.Rows, aws.ToInt64(head.ContentLength)), nil",
     'return head.Metadata[metadata] != "", nil', "an object of other rows or another length counts as the batch's"),
    ("os03", OS, "delete.go", 'if f.code != "NoSuchKey" {', 'if f.code == "NoSuchKey" {',
     "objects that were not deleted go unnoticed"),
    ("os04", OS, "staging.go", "Number: b.ID.Number / c.GroupBatches}", "Number: (b.ID.Number + 1) / c.GroupBatches}",
     "a batch lies in the next group's folder"),
    ("os05", OS, "place.go", 'if strings.Contains(text, "@") {', 'if strings.HasPrefix(text, "@") {',
     "an endpoint with a password in it is accepted, and shown"),
    ("os06", OS, "run.go", " || r.Name(n, f) != name {", " {",
     "any object with a number in its name counts as a batch"),

    # ---- engine
    ("en01", EN, "deliver.go", "case ack.Rows != t.wanted() && ", "case ack.Rows > t.wanted() && ",
     "an acknowledged count that is too small is accepted"),
    ("en02", EN, "deliver.go", "ours := t.Attempt > 1 || ", "ours := t.Attempt > 0 || ",
     "a batch that is there before it was first sent counts as this run's"),
    ("en03", EN, "retrying.go", "case before == loader.Unknown || newest == loader.Unknown:", "case newest == loader.Unknown:",
     "a later 'not applied' makes an unknown outcome certain"),
    ("en04", EN, "retrying.go", "return applied == loader.No || d.Contract", "return applied != loader.Yes || d.Contract",
     "a batch with an unknown outcome is sent again"),
    ("en05", EN, "retrying.go", "(v.Applied != loader.No || v.SessionDead)", "(v.Applied != loader.No && v.SessionDead)",
     "the database is not asked after a lost answer of a living session"),
    ("en06", EN, "retrying.go", "\td.closeSession()\n\tfor {", "\tfor {",
     "Resolve runs beside the session whose attempt it judges"),
    ("en07", EN, "retrying.go", "needed := t.batch == nil || d.Contract.Dedup == loader.DedupKey || ", "needed := t.batch == nil || ",
     "an attempt under a label is not announced on disk"),
    ("en08", EN, "groups.go", "if open.stored == min(g.size, g.end-open.number*g.size) {", "if open.stored == max(min(g.size, g.end-open.number*g.size)-1, 1) {",
     "a group is committed before its last batch is stored"),
    ("en09", EN, "commit.go", "if err == nil && t.unrecorded == nil {", "if err == nil {",
     "the objects of a group are removed although its commit is not in the journal"),
    ("en10", EN, "worker.go", "\tdefer b.Release()\n", "\tb.Release()\n",
     "a batch's buffer is released before it is sent"),
    ("en11", EN, "retrying.go", "t.batch.Skip = found.Rows", "t.batch.Skip = 0 * found.Rows",
     "rows at the front of a batch that are in are sent again"),
    ("en12", RT, "retry.go", "over || !away && w.left <= 0", "over || !away && w.left < 0",
     "one retry more than --retries says"),
    ("en13", RT, "outage.go", "there := !failed.IsZero() && ", "there := false && ",
     "a batch at which the server closes the connection is sent for ten minutes"),
    ("en14", EN, "retrying.go", "another := v.Retry && waits.Failed(v, err)", "another := v.Retry",
     "attempts are not counted"),

    # ---- verify
    ("ve01", VE, "result.go", "r.FoundRows == r.ExpectedRows && r.BadCount == 0 && ", "r.FoundRows == r.ExpectedRows && ",
     "wrong batches do not fail the proof if the sum is right"),
    ("ve02", VE, "count.go", " || b.Squares.Cmp(s.squares) != 0:", ":",
     "an exchanged pair of rows with the same sum goes unnoticed"),
    ("ve03", VE, "count.go", "b.Mix.Cmp(s.mix) != 0", "b.Mix.Sign() < 0",
     "full: other keys with the same sum of squares go unnoticed"),
    ("ve04", VE, "full.go", "case n == 0:\n", "case n < 0:\n",
     "full: a row of the sample that is missing goes unnoticed"),
    ("ve05", VE, "count.go", "case o.bytes < acked:", "case o.bytes == 0 && acked > 0:",
     "an object that is shorter than acknowledged goes unnoticed"),
    ("ve06", VE, "count.go", "\t\t*r = before\n\t\treturn r.recount(", "\t\t_ = before\n\t\treturn r.recount(",
     "a repeated count adds to the first answer's part"),
    ("ve07", VE, "full.go", "if n == l.last {", "if n > l.last {",
     "full: the last batch is compared with a whole one's lengths"),
    ("ve08", VE, "scan.go", "earlier.Of == t.Of", "earlier.Of != \"\"",
     "a proof goes on from what was counted in another table"),
    ("ve09", VE, "scan.go", "\t\tif t.Done[i] {\n\t\t\tcontinue\n\t\t}\n", "",
     "a proof that goes on counts parts twice"),
    ("ve10", VE, "scan.go", "sum.Add(*b)", "_ = sum",
     "what a second part has of a batch is lost"),
    ("pg12", PG, "split.go", "ctid < '(%d,0)'\", span.First, span.Last+1)", "ctid < '(%d,0)'\", span.First, span.Last)",
     "the last block of every part is left out of the proof"),

    # ---- runlog
    ("rl01", RL, "done.go", "word &^= other.bits[i]", "word &= other.bits[i]",
     "lost batches are taken for those that are there"),
    ("rl02", RL, "replay.go", "err = file.Truncate(torn.Offset)", "err = nil",
     "a line that a crash cut off stays, and the next one joins it"),
    ("rl03", RL, "folder.go", "case free:", "case free || true:",
     "two processes work on one run"),
    ("rl04", RL, "runlog.go", "\terr := l.failed\n\tif err == nil {\n\t\tif err = f()", "\tvar err error\n\tif err == nil {\n\t\tif err = f()",
     "after a failed write to the journal the run goes on"),
    ("rl06", RL, "runlog.go", "{&l.journal, &l.batches}", "{&l.journal}",
     "an attempt that is marked as begun is not on disk before it is sent"),
    ("rl05", RL, "replay.go", 'if err == nil && r.Header().Run != run {', 'if err == nil && r.Header().Run == "" {',
     "another run's journal is replayed"),

    # ---- push
    ("pu09", PU, "state.go", "e.Outcome == event.Started && e.Attempt == 1", "e.Outcome == event.Started",
     "the number of a second attempt under a label is not on disk"),
    ("pu10", PU, "state.go", "e.Done() && e.Missing == 0 &&", "e.Done() &&",
     "rows that an answer lacked are forgotten by a resume"),
    ("pu01", PU, "resume.go", "\ts.done = claimed\n\treturn nil\n", "\t_ = claimed\n\treturn nil\n",
     "a resume trusts its journal instead of the claims"),
    ("pu02", PU, "state.go", "(e.Outcome == event.Started || e.Members > 0)", "(e.Outcome != event.Started && e.Members > 0)",
     "an announced attempt is not on disk before it is sent"),
    ("pu03", PU, "resume.go", "if rest == 0 {", "if rest >= 0 {",
     "rows without claims are sent a second time"),
    ("pu04", PU, "store.go", "stored && e.Encoded == bytes", "stored && (e.Encoded == bytes || bytes > 0)",
     "an object that is too short is loaded"),
    ("pu05", PU, "prove.go", "r.Stage = runlog.Verified", "r.Stage = runlog.Loaded",
     "a verified run whose claims are gone looks as if its rows were lost"),
    ("pu06", PU, "prove.go", "if !v.OK {", "if !v.OK && mode == verify.Full {",
     "a proof by count that fails is no error"),
    ("pu07", PU, "same.go", "if table.Identity == r.Identity {", 'if table.Identity != "" {',
     "a resume goes on in another table of the same name"),
    ("pu08", PU, "load.go", "if err == nil && !result.Drained {\n\t\tr.Stage", "if err == nil {\n\t\tr.Stage",
     "an interrupted run is recorded as loaded"),

    # ---- feed
    ("fe01", FE, "make.go", "key := f.plan.FirstKey + number*f.plan.BatchRows", "key := number * f.plan.BatchRows",
     "stamped batches ignore --first-key"),
    ("fe02", FE, "plan.go", "rows:     int(min(p.BatchRows, p.Rows-number*p.BatchRows)),", "rows:     int(p.BatchRows),",
     "the last batch has rows beyond the run's end"),
    ("fe03", FE, "feed.go", "for ; back < cap(f.free); back++ {", "for ; back < len(f.free); back++ {",
     "the ring is unmapped while a batch is in use"),

    # ---- httpload, netio
    ("hl01", HL, "patient.go", "\tc.failed.Store(true)\n\treturn len(p), nil", "\treturn n, err",
     "the answer of a server that refuses a body early is lost"),
    ("hl02", HL, "body.go", "func (f *framed) Close() error { return f.body.Close() }", "func (f *framed) Close() error { return nil }",
     "the body of a request is not closed: its buffer never returns to the ring"),
    ("ni01", NI, "tls.go", "config.InsecureSkipVerify = mode == loader.TLSPrefer || mode == loader.TLSRequire", "config.InsecureSkipVerify = true",
     "--tls verify verifies nothing"),
    ("ni02", NI, "tls.go", "return config, mode == loader.TLSPrefer, nil", "return config, mode != loader.TLSVerify, nil",
     "--tls require goes on without TLS"),
    ("ni03", NI, "write_linux.go", "\t\tsent += int64(n)\n\t\tdrop(b, n)\n", "\t\tsent += int64(n)\n\t\tdrop(b, int(min(sent, 1<<30)))\n",
     "a write of several buffers that the kernel took in parts loses bytes"),

    # ---- pkg/loader, pkg/batch
    ("pl01", PL, "fault.go", "v.Applied = known.Applied", "_ = known.Applied",
     "what the back-end knows of the outcome is ignored"),
    ("pl02", PL, "fault.go", "case isBroken(err):\n\t\treturn Fault{Verdict: Lost(", "case isBroken(err):\n\t\treturn Fault{Verdict: Reconnect(",
     "a broken connection counts as not applied"),
    ("pl03", PL, "redact.go", "if len(found) < min(echoed, len(secret)) {", "if len(found) < len(secret) {",
     "a part of a secret in a server's error is shown"),
    ("pl04", PL, "caps.go", "case w.Delivery == ExactlyOnce:\n\t\treturn c, nil,", "case w.Delivery == ExactlyOnce && w.Workers < 0:\n\t\treturn c, nil,",
     "--delivery exactly-once is accepted where it is not possible"),
    ("pb01", PB, "body.go", "b.Encoded[b.Starts[b.Skip]:]", "b.Encoded[b.Starts[b.Skip-1]:]",
     "the last row that is in already is sent again"),
    ("pb02", PB, "body.go", "\t\tr.batch.Release()\n\t\tr.batch = nil\n", "\t\tr.batch.Release()\n",
     "a body that is closed twice releases its buffer twice"),
]]
