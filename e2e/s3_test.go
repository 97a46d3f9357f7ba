package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/report"
)

// One object a batch, in every format, read back by readers that are not ours.
func TestObjects(t *testing.T) {
	t.Parallel()
	people, journal := peopleLoad(scaled[int64](8000, 2_000_000), 3000), dataLoad("journal", 1000, 300, 1<<40)
	for format, l := range map[string]load{"csv": people, "tsv": journal, "ndjson": journal, "parquet": people} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			r := f.push(l.flags("--format", format, "--workers", "4", "--verify", "count")...).run(t).ends(t, 0)
			assert.Empty(t, r.stderr)
			is := reportOf(t, r)
			assert.Equal(t, report.OK, is.Result.Outcome)
			assert.Equal(t, []any{"put", format, "exactly-once", l.dataset}, []any{is.Plan.Method, is.Plan.Format, is.Plan.Delivery, is.Plan.Dataset})
			assert.Equal(t, []int64{l.rows, l.batches(), l.batches()}, []int64{is.Result.Rows, is.Result.Batches, is.Result.Attempts})
			assert.Equal(t, report.Verify{
				Mode: "count", Ran: true, OK: true, ExpectedRows: l.rows, FoundRows: l.rows,
				BadBatches: []report.BadBatch{}, Problems: []string{},
			}, is.Verify)
			var stored int64
			for _, o := range f.list(t) {
				stored += o.bytes
			}
			assert.Equal(t, []int64{stored, stored}, []int64{is.Result.EncodedBytes, is.Stored.Bytes})
			assert.Less(t, float64(is.Result.WireBytes), 1.05*float64(stored))
			f.holds(t, is.Run.ID, format, l)
			f.keepsSecrets(t, r.all())
		})
	}
}

// Whatever else lies in the bucket stays, whatever terapush does there.
func TestForeignObjects(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	foreign := map[string]string{
		f.prefix + "/important.csv":                           "1,2,3\n",
		f.prefix + "/000000000000.csv":                        "a name like a batch's",
		f.prefix + "/20200101-000000-abcdef/notes":            "another run's folder",
		f.prefix + "/20200101-000000-abcdef/000000000000.csv": "another run's batch",
	}
	for key, body := range foreign {
		f.put(t, key, body)
	}
	l := peopleLoad(2000, 200)
	f.push(l.flags("--create", "recreate")...).fails(t, "--create recreate")
	r := f.push(l.flags()...).run(t).ends(t, 0)
	id := reportOf(t, r).Run.ID
	for name, body := range map[string]string{"notes.txt": "within the run", "000000000099.csv": "a batch that the run does not have"} {
		key := f.prefix + "/" + id + "/" + name
		f.put(t, key, body)
		foreign[key] = body
	}
	f.again(t, "verify").run(t).ends(t, 0).says(t, "notes.txt", "000000000099.csv")
	f.again(t, "forget").run(t).ends(t, 0)
	assert.Empty(t, f.runs(t))

	left := map[string]string{}
	for _, o := range f.list(t) {
		if _, known := foreign[o.key]; known {
			left[o.key] = string(f.get(t, o.key))
		}
	}
	assert.Equal(t, foreign, left)
	assert.Len(t, f.list(t), len(foreign)+int(l.batches()), "the objects are the result, and stay as well")
}

// A wrong secret is found before anything is written, and none is shown.
func TestStorePreflight(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	i := f.push(peopleLoad(2000, 200).flags()...)
	i.env = []string{"AWS_SECRET_ACCESS_KEY=not-the-secret"}
	r := i.fails(t, "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY")
	assert.NotContains(t, r.all(), "not-the-secret")
	assert.Empty(t, f.runs(t), "no run was begun")
	assert.Empty(t, f.list(t), "nothing was written")
}
