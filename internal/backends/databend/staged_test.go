package databend

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
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
	f.on("DESC STAGE loads", result([]any{"loads"}))
	f.uploads(t, "")
	db, s := f.open(t, methodStageLoad, func(t *loader.Target) { t.Options = map[string]string{"stage": "loads"} })
	ack, err := s.Load(t.Context(), testBatch(1))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Stored: true, Rows: 3}, ack)
	upload := f.asked("/v1/upload_to_stage")[0].header
	require.Equal(t, "loads", upload.Get("X-DATABEND-STAGE-NAME"))
	require.Equal(t, "terapush/r-1", upload.Get("X-DATABEND-RELATIVE-PATH"))

	f.on(copyInto, result(fileRow("2", "3"), fileRow("3", "2")))
	ack, err = db.Commit(t.Context(), testGroup(4))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: 5}, ack)
	sent := f.asked(copyInto)[0]
	require.Contains(t, sent.query.SQL, "FROM @loads FILES = ('terapush/r-1/000000000002.csv', 'terapush/r-1/000000000003.csv') ")
	require.Equal(t, "terapush:r-1:db.t:group-1", sent.header.Get(labelName))
	require.Equal(t, queryID(groupKind, batch.ID{Run: "r-1", Number: 1}, 4), sent.header.Get(idName))

	require.NoError(t, db.Discard(t.Context(), testGroup(1)))
	require.Len(t, f.asked("REMOVE @loads/terapush/r-1/ PATTERN = '(000000000002|000000000003)[.]csv'"), 1)

	f.on("LIST @loads/terapush/r-1/", result(
		[]any{"terapush/r-1/000000000007.csv", "15", nil}, []any{"terapush/r-1/readme", "1", nil}))
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
	f.uploads(t, "")
	_, s := f.open(t, methodStageLoad)
	const file = "terapush/r-1/000000000002.csv"
	f.on("LIST @~/"+file, result([]any{file, "7"}))
	_, err := s.Load(t.Context(), testBatch(2))
	require.ErrorContains(t, err, "has 7 bytes in the stage, and 13 were uploaded")
	require.True(t, New().Classify(err).Retry)
	f.on("LIST @~/"+file, result([]any{file, "13"}))
	_, err = s.Load(t.Context(), testBatch(3))
	require.NoError(t, err)
}

func TestAnswersToACopy(t *testing.T) {
	wrong := loader.Verdict{Class: loader.ClassRows}
	for name, c := range map[string]struct {
		attempt int
		answer  string
		found   string
		want    loader.Verdict
		says    string // "" for rows that are in
	}{
		"skipped, the rows are in":     {2, result(), "5", loader.Verdict{}, ""},
		"skipped, the rows are not in": {1, result(), "0", loader.Verdict{Class: loader.ClassRows, Applied: loader.No}, "wrote no row"},
		"skipped, some rows are in":    {2, result(), "4", loader.Verdict{Class: loader.ClassRows, Retry: true}, "4 rows with keys 6 to 10"},
		"a file is missing":            {1, result(fileRow("2", "3")), "", wrong, "file terapush/r-1/000000000003.csv was skipped"},
		"a row is missing":             {1, result(fileRow("2", "3"), fileRow("3", "1")), "", wrong, "1 of 2 rows"},
		"rows in the wrong file":       {1, result(fileRow("2", "2"), fileRow("3", "3")), "", wrong, "2 of 3 rows"},
		"an error in a row":            {1, result(fileRow("2", "3"), []any{"terapush/r-1/000000000003.csv", "2", "1", "bad", "7"}), "", wrong, "1 errors bad"},
		"not to be read": {1, result([]any{"x", "many", "0", nil, nil}), "",
			loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, "many"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			db, _ := f.open(t, methodStageLoad)
			f.on(copyInto, c.answer)
			f.on("SELECT COUNT(*) FROM `db`.`t` WHERE `id` BETWEEN 6 AND 10", result([]any{c.found}))
			ack, err := db.Commit(t.Context(), testGroup(c.attempt))
			if c.says == "" {
				require.NoError(t, err)
				require.Equal(t, loader.Ack{Rows: 5, AlreadyApplied: true}, ack)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.want, New().Classify(err))
		})
	}
}

// testSecret needs quotes in SQL.
const testSecret = `se'cr\et+key`

// newBucket starts a store that stages are made of.
func (f *fake) newBucket(t *testing.T) (store backendtest.Store, via func(*loader.Target)) {
	store = backendtest.StoreAndKeys(t, nil)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	f.on("CREATE OR REPLACE STAGE", result())
	return store, func(t *loader.Target) { t.Via = store.Via() }
}

func TestStageLoadThroughABucket(t *testing.T) {
	f := newFake(t)
	f.on(copyInto, result([]any{"r-1/000000000002.csv", "3", "0", nil, nil}, []any{"r-1/000000000003.csv", "2", "0", nil, nil}))
	store, via := f.newBucket(t)
	db, s := f.open(t, methodStageLoad, via)
	ack, err := s.Load(t.Context(), testBatch(1))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Stored: true, Rows: 3}, ack)
	require.Equal(t, []string{"in/r-1/000000000002.csv"}, store.Keys())
	_, err = db.Commit(t.Context(), testGroup(1))
	require.NoError(t, err)
	require.NoError(t, db.Discard(t.Context(), testGroup(1)))
	require.Empty(t, store.Keys())

	made := f.asked("CREATE OR REPLACE STAGE")
	require.Len(t, made, 1, "the stage is made once")
	require.Contains(t, made[0].query.SQL, "STAGE terapush_r_1 URL = 's3://bucket/in/' CONNECTION = (endpoint_url = 'http://")
	require.Contains(t, made[0].query.SQL, `secret_access_key = 'se\'cr\\et+key'`)
	require.Contains(t, made[0].query.SQL, "enable_virtual_host_style = 'false'")
	// The path from the root of the stage holds the run: COPY remembers nothing else of a file.
	require.Contains(t, f.asked(copyInto)[0].query.SQL, "FROM @terapush_r_1 FILES = ('r-1/000000000002.csv', 'r-1/000000000003.csv')")

	require.NoError(t, db.Close())
	require.Len(t, f.asked("DROP STAGE IF EXISTS terapush_r_1"), 1)
	require.NotEqual(t, stageName("r-1"+"1/3"), stageName("r-1"+"2/3"), "shards drop their own stages")
}

func hidesCredentials(t *testing.T, err error, says string) {
	t.Helper()
	require.ErrorContains(t, err, says)
	for _, secret := range []string{backendtest.S3Key, backendtest.S3Token, testSecret, strings.Trim(literal(testSecret), "'"), "hidden-password"} {
		require.NotContains(t, err.Error(), secret)
	}
}

// The server repeats statements, and a store's own words can hold what was signed.
func TestCredentialsInNoError(t *testing.T) {
	f := newFake(t)
	target := f.target(methodStageLoad)
	_, via := f.newBucket(t)
	via(&target)
	f.call("CREATE OR REPLACE STAGE", func(s seen) string { return failure(1005, "error in: "+s.query.SQL) })
	l := openTarget(t, target)
	_, err := l.Prepare(t.Context(), preparation(methodStageLoad))
	hidesCredentials(t, err, "CREATE OR REPLACE STAGE")
	require.NoError(t, l.Close())
	require.Empty(t, f.asked("DROP STAGE"), "no stage was made")

	f = newFake(t)
	f.on(copyInto, failure(4000, "GET http://store/?X-Amz-Credential="+backendtest.S3Key+": connection refused; "+testSecret))
	_, via = f.newBucket(t)
	db, _ := f.open(t, methodStageLoad, via)
	_, err = db.Commit(t.Context(), testGroup(1))
	hidesCredentials(t, err, "connection refused")
	require.Equal(t, loader.Unknown, New().Classify(err).Applied)
}

// The server cuts what it repeats of a statement wherever it likes, and has escapes of its own.
func TestRedaction(t *testing.T) {
	access := objstore.Access{KeyID: "KEY", Secret: "wJalr'XUtnFEMI", Token: "t0ken"}
	for said, want := range map[string]string{
		"secret wJalr'XUtnFEMI, token t0ken, key KEY":                                               "secret ***, token ***, key ***",
		"unexpected end of line: secret_access_key = 'wJalr''XUt":                                   "unexpected end of line: secret_access_key = '***",
		"  --> SQL:1:99\n1 | CREATE … CONNECTION = (secret_access_key = 'wJ\\u0061lr', secret = 'x": "  --> SQL:1:99\n1 | CREATE … CONNECTION = (…",
	} {
		err := redactStage(&lostError{&serverError{status: 200, code: 1005, message: said}}, access)
		require.EqualError(t, err, "the statement was running, and its outcome cannot be asked for: server error 1005: "+want)
		require.True(t, New().Classify(err).SessionDead, "what else the error says stays")
	}
	require.Equal(t, io.EOF, redactStage(io.EOF, access))
}
