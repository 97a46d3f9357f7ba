package databend

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

const copyInto = "COPY INTO `db`.`t`"

// testGroup is group 1 of run r-1: batches 2 and 3, with rows 6 to 10.
func testGroup(attempt int) loader.Group {
	return loader.Group{
		Ref: loader.Ref{ID: batch.ID{Run: "r-1", Number: 1}, First: 6, Rows: 5, Attempt: attempt},
		Members: []loader.Ref{
			{ID: batch.ID{Run: "r-1", Number: 2}, First: 6, Rows: 3},
			{ID: batch.ID{Run: "r-1", Number: 3}, First: 9, Rows: 2},
		},
	}
}

func fileRow(number, rows string) []any {
	return []any{"terapush/r-1/00000000000" + number + ".csv", rows, "0", nil, nil}
}

func TestStageLoadThroughTheNode(t *testing.T) {
	f := newFake(t)
	f.on("DESC STAGE", say(result([]any{"loads"})))
	f.routes["/v1/upload_to_stage"] = uploaded(t, "")
	db, s := f.open(t, stageLoad, func(t *loader.Target) { t.Options = map[string]string{optionStage: "loads"} })
	ack, err := s.Load(t.Context(), testBatch(1))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Stored: true, Rows: 3}, ack)
	upload := f.asked("/v1/upload_to_stage")[0].header
	require.Equal(t, "loads", upload.Get("X-DATABEND-STAGE-NAME"))
	require.Equal(t, "terapush/r-1", upload.Get("X-DATABEND-RELATIVE-PATH"))

	f.on(copyInto, say(result(fileRow("2", "3"), fileRow("3", "2"))))
	ack, err = db.Commit(t.Context(), testGroup(4))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: 5}, ack)
	sent := f.asked(copyInto)[0]
	require.Equal(t, "COPY INTO `db`.`t` (`id`, `s`) FROM @loads FILES = ('terapush/r-1/000000000002.csv', "+
		"'terapush/r-1/000000000003.csv') "+fileFormat(batch.CSV)+" ON_ERROR = abort", sent.sql)
	require.Equal(t, "terapush:r-1:db.t:group-1", sent.header.Get("X-DATABEND-DEDUPLICATE-LABEL"))
	require.Equal(t, queryID(groupKind, batch.ID{Run: "r-1", Number: 1}, 4), sent.header.Get("X-DATABEND-QUERY-ID"))

	require.NoError(t, db.Discard(t.Context(), testGroup(1)))
	require.Equal(t, "REMOVE @loads/terapush/r-1/ PATTERN = '(000000000002|000000000003)[.]csv'", f.asked("REMOVE")[0].sql)

	f.on("LIST @loads/terapush/r-1/", say(result(
		[]any{"terapush/r-1/000000000007.csv", "15", nil}, []any{"terapush/r-1/readme", "1", nil})))
	got := make(map[string]int64)
	require.NoError(t, db.Objects(t.Context(), "r-1", func(name string, number, _ int64) error {
		got[name] = number
		return nil
	}))
	require.Equal(t, map[string]int64{"terapush/r-1/000000000007.csv": 7, "terapush/r-1/readme": -1}, got)
	require.Error(t, db.Objects(t.Context(), "another", nil))
}

// The end of an upload that broke may come after the one that follows it.
func TestAFileThatIsSentAgainIsMeasured(t *testing.T) {
	f := newFake(t)
	f.routes["/v1/upload_to_stage"] = uploaded(t, "")
	_, s := f.open(t, stageLoad)
	f.on("LIST @~/terapush/r-1/000000000002.csv", say(result([]any{"terapush/r-1/000000000002.csv", "7"})))
	_, err := s.Load(t.Context(), testBatch(2))
	require.ErrorContains(t, err, "has 7 bytes in the stage, and 13 were uploaded")
	require.True(t, New().Classify(err).Retry)
	f.on("LIST @~/terapush/r-1/000000000002.csv", say(result([]any{"terapush/r-1/000000000002.csv", "13"})))
	_, err = s.Load(t.Context(), testBatch(3))
	require.NoError(t, err)
}

func TestAnswersToACopy(t *testing.T) {
	for name, c := range map[string]struct {
		attempt int
		answer  string
		found   string
		ack     loader.Ack
		want    loader.Verdict
		says    string
	}{
		"skipped, the rows are in":     {2, result(), "5", loader.Ack{Rows: 5, AlreadyApplied: true}, loader.Verdict{}, ""},
		"skipped, the rows are not in": {1, result(), "0", loader.Ack{}, loader.Verdict{Class: loader.ClassRows, Applied: loader.No}, "wrote no row"},
		"skipped, some rows are in":    {2, result(), "4", loader.Ack{}, loader.Verdict{Class: loader.ClassRows, Retry: true}, "4 rows with keys 6 to 10"},
		"a file is missing": {1, result(fileRow("2", "3")), "", loader.Ack{}, loader.Verdict{Class: loader.ClassRows},
			"file terapush/r-1/000000000003.csv was skipped"},
		"a row is missing": {1, result(fileRow("2", "3"), fileRow("3", "1")), "", loader.Ack{}, loader.Verdict{Class: loader.ClassRows}, "1 of 2 rows"},
		"an error in a row": {1, result(fileRow("2", "3"), []any{"terapush/r-1/000000000003.csv", "2", "1", "bad", "7"}), "", loader.Ack{},
			loader.Verdict{Class: loader.ClassRows}, "1 errors bad"},
		"not to be read":         {1, result([]any{"x", "many", "0", nil, nil}), "", loader.Ack{}, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, "many"},
		"another COPY meanwhile": {2, failure(2014, "Duplicated"), "", loader.Ack{}, loader.Verdict{Class: loader.ClassLock, Applied: loader.No, Retry: true}, "another COPY"},
		"an object is gone":      {1, failure(3001, "NotFound"), "", loader.Ack{}, loader.Verdict{Class: loader.ClassMissing, Applied: loader.No}, "gone from the stage"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			db, _ := f.open(t, stageLoad)
			f.on(copyInto, say(c.answer))
			f.on("SELECT COUNT(*) FROM `db`.`t` WHERE `id` BETWEEN 6 AND 10", say(result([]any{c.found})))
			ack, err := db.Commit(t.Context(), testGroup(c.attempt))
			require.Equal(t, c.ack, ack)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.want, New().Classify(err))
		})
	}
}

const (
	testKeyID  = "AKIDTEST"
	testSecret = `se'cr\et+key`
)

// objects is a bucket that takes everything and lists nothing.
func objects(t *testing.T) func(*loader.Target) {
	t.Setenv("AWS_ACCESS_KEY_ID", testKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	t.Setenv("AWS_SESSION_TOKEN", "")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	store := newStore(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `<ListBucketResult><Name>bucket</Name><Prefix>some/prefix/</Prefix><KeyCount>0</KeyCount><MaxKeys>1</MaxKeys><IsTruncated>false</IsTruncated></ListBucketResult>`)
		}
	})
	via, err := loader.ParseTarget("s3://bucket/some/prefix?path_style=true&region=eu-1&endpoint=" + store.URL)
	require.NoError(t, err)
	return func(t *loader.Target) { t.Via = &via }
}

func TestStageLoadThroughABucket(t *testing.T) {
	f := newFake(t)
	f.on("CREATE OR REPLACE STAGE", say(result()))
	f.on(copyInto, say(result([]any{"r-1/000000000002.csv", "3", "0", nil, nil}, []any{"r-1/000000000003.csv", "2", "0", nil, nil})))
	db, s := f.open(t, stageLoad, objects(t))
	ack, err := s.Load(t.Context(), testBatch(1))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Stored: true, Rows: 3}, ack)
	_, err = db.Commit(t.Context(), testGroup(1))
	require.NoError(t, err)
	require.NoError(t, db.Discard(t.Context(), testGroup(1)))

	made := f.asked("CREATE OR REPLACE STAGE")
	require.Len(t, made, 1, "the stage is made once")
	require.Contains(t, made[0].sql, "STAGE terapush_r_1 URL = 's3://bucket/some/prefix/' CONNECTION = (endpoint_url = 'http://")
	require.Contains(t, made[0].sql, `secret_access_key = 'se\'cr\\et+key'`)
	require.Contains(t, made[0].sql, "enable_virtual_host_style = 'false'")
	// The path from the root of the stage holds the run: COPY remembers nothing else of a file.
	require.Contains(t, f.asked(copyInto)[0].sql, "FROM @terapush_r_1 FILES = ('r-1/000000000002.csv', 'r-1/000000000003.csv')")

	require.NoError(t, db.Close())
	require.Len(t, f.asked("DROP STAGE IF EXISTS terapush_r_1"), 1)
}

func TestCredentialsInNoError(t *testing.T) {
	f := newFake(t)
	f.on("CREATE OR REPLACE STAGE", func(s seen) string { return failure(1005, "error in: "+s.sql) })
	target := f.target(stageLoad)
	objects(t)(&target)
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	_, err = l.Prepare(t.Context(), preparation(stageLoad))
	require.ErrorContains(t, err, "CREATE OR REPLACE STAGE")
	for _, secret := range []string{testKeyID, testSecret, strings.Trim(literal(testSecret), "'"), "hidden-password"} {
		require.NotContains(t, err.Error(), secret)
	}
	require.NoError(t, l.Close())
	require.Empty(t, f.asked("DROP STAGE"), "no stage was made")
}

func TestRedactionKeepsTheCode(t *testing.T) {
	err := redactStage(&serverError{status: 200, code: 2511, message: "secret s3cret, token t0ken, key KEY"},
		objstore.Access{KeyID: "KEY", Secret: "s3cret", Token: "t0ken"})
	require.EqualError(t, err, "server error 2511: secret ***, token ***, key ***")
	// The server cuts what it repeats of a statement wherever it likes.
	err = redactStage(&serverError{status: 200, code: 1005, message: `unexpected end of line: secret_access_key = 'wJalr''XUt`},
		objstore.Access{Secret: "wJalr'XUtnFEMI"})
	require.EqualError(t, err, "server error 1005: unexpected end of line: secret_access_key = '***")
	other := errors.New("reset")
	require.Equal(t, other, redactStage(other, objstore.Access{}))
	// In its own escapes it would not be found, so all of it goes.
	err = redactStage(&lostError{&serverError{status: 200, code: 1005, message: "  --> SQL:1:99\n1 | CREATE … CONNECTION = (secret_access_key = 'wJ\\u0061lr'"}},
		objstore.Access{Secret: "wJalr'XUtnFEMI"})
	require.ErrorContains(t, err, "server error 1005:   --> SQL:1:99\n1 | CREATE … CONNECTION = (…")
	require.NotContains(t, err.Error(), "u0061")
	require.True(t, New().Classify(err).SessionDead, "what else the error says stays")
}

// A store's own words can hold what was signed.
func TestCredentialsInNoErrorOfCopy(t *testing.T) {
	f := newFake(t)
	f.on("CREATE OR REPLACE STAGE", say(result()))
	f.on(copyInto, say(failure(4000, "GET http://store/?X-Amz-Credential="+testKeyID+": connection refused; "+testSecret)))
	db, _ := f.open(t, stageLoad, objects(t))
	_, err := db.Commit(t.Context(), testGroup(1))
	require.ErrorContains(t, err, "connection refused")
	require.NotContains(t, err.Error(), testKeyID)
	require.NotContains(t, err.Error(), testSecret)
	require.Equal(t, loader.Unknown, New().Classify(err).Applied)
}
