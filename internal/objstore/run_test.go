package objstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func TestObjectsOfARun(t *testing.T) {
	eachStore(t, func(t *testing.T, target loader.Target) {
		s := open(t, target)
		r := s.Run("run-1")
		prefix := target.Database + "/run-1/"
		assert.Equal(t, prefix+"000000000007.csv", r.Name(7, batch.CSV))
		assert.Empty(t, names(t, r))

		putAll(t, r, "run-1", 0, 1, 2, 12)
		putAll(t, r, "run-1", 1) // again, as after a lost answer
		var found []Object
		require.NoError(t, r.List(t.Context(), func(o Object) error {
			assert.NotEmpty(t, o.ETag)
			o.ETag = ""
			found = append(found, o)
			return nil
		}))
		assert.Equal(t, []Object{
			{Name: prefix + "000000000000.csv", Number: 0, Bytes: 4},
			{Name: prefix + "000000000001.csv", Number: 1, Bytes: 8},
			{Name: prefix + "000000000002.csv", Number: 2, Bytes: 12},
			{Name: prefix + "000000000012.csv", Number: 12, Bytes: 24},
		}, found)

		assert.Equal(t, bodyOf(2), textOf(t, s, r.Name(2, batch.CSV)))

		for number, want := range map[int64]bool{2: true, 3: false} {
			holds, err := r.Holds(t.Context(), loader.Ref{ID: batch.ID{Number: number}, First: 100 * number, Rows: 100}, batch.CSV)
			require.NoError(t, err)
			assert.Equal(t, want, holds, number)
		}
		for name, ref := range map[string]loader.Ref{
			"other rows": {ID: batch.ID{Number: 2}, First: 200, Rows: 99}, "rows of another place": {ID: batch.ID{Number: 2}, First: 0, Rows: 100},
		} {
			holds, err := r.Holds(t.Context(), ref, batch.CSV)
			require.NoError(t, err)
			assert.False(t, holds, name)
		}
		cut := s3.PutObjectInput{
			Bucket: &s.bucket, Key: aws.String(r.Name(2, batch.CSV)), Body: strings.NewReader("row\n"),
			Metadata: map[string]string{metadata: describe(200, 100, int64(len(bodyOf(2))))},
		}
		_, err := s.client.PutObject(t.Context(), &cut)
		require.NoError(t, err)
		holds, err := r.Holds(t.Context(), loader.Ref{ID: batch.ID{Number: 2}, First: 200, Rows: 100}, batch.CSV)
		require.NoError(t, err)
		assert.False(t, holds, "an object that is shorter than what was put there is no batch")

		require.NoError(t, r.Delete(t.Context(), refs(0, 2, 3, 12), batch.CSV), "3 is gone already")
		assert.Equal(t, []string{prefix + "000000000001.csv"}, names(t, r))
		require.NoError(t, r.Delete(t.Context(), refs(1), batch.CSV))
		require.NoError(t, r.Delete(t.Context(), refs(1), batch.CSV))
		require.NoError(t, r.Delete(t.Context(), nil, batch.CSV))
		assert.Empty(t, names(t, r))
	})
}

// A bucket belongs to others: whatever else lies in it stays, also in the run's own folder.
func TestForeignKeysStay(t *testing.T) {
	eachStore(t, func(t *testing.T, target loader.Target) {
		s := open(t, target)
		mine, other := s.Run("run-1"), s.Run("run-10")
		putAll(t, other, "run-10", 0, 1)
		foreign := []string{
			target.Database + "/run-1.csv",
			target.Database + "/run-1/000000000001.csv.bak",
			target.Database + "/run-1/1.csv",
			target.Database + "/run-1/-00000000001.csv",
			target.Database + "/run-1/0000000000001.csv",
			target.Database + "/run-1/000000000001",
			target.Database + "/run-1/000000000001.json",
			target.Database + "/run-1/a/000000000001.csv",
		}
		for _, name := range foreign {
			putForeign(t, s, name)
		}
		putAll(t, mine, "run-1", 0, 1)

		unknown := 0
		require.NoError(t, mine.Objects(t.Context(), func(name string, number, _ int64) error {
			if number == -1 {
				unknown++
				assert.Contains(t, foreign, name)
			}
			return nil
		}))
		assert.Equal(t, len(foreign)-1, unknown)

		require.NoError(t, mine.Delete(t.Context(), refs(0, 1), batch.CSV))
		assert.ElementsMatch(t, foreign[1:], names(t, mine))
		assert.Len(t, names(t, other), 2)
		assert.Equal(t, "foreign", textOf(t, s, foreign[0]))
	})
}

func TestRunIsAFolder(t *testing.T) {
	s := &Store{place: place{bucket: "bucket", prefix: "p"}}
	for _, name := range []string{"", ".", "..", "a/b", "a b", "a\n", "ä"} {
		r := s.Run(name)
		b := newBatch(name, 0, "x")
		for what, err := range map[string]error{
			"put": r.Put(t.Context(), b.Batch), "delete": r.Delete(t.Context(), refs(1), batch.CSV),
			"list": r.List(t.Context(), func(Object) error { return nil }),
		} {
			assert.ErrorContains(t, err, "cannot be the name of a folder", "%s %q", what, name)
		}
	}
}

// Listings come in pages, and deletions in groups, of a thousand.
func TestManyObjects(t *testing.T) {
	var asked requests
	server := fakeStore(t, asked.note)
	s := open(t, targetOf(t, "s3://bucket/p", server.URL))
	r := s.Run("run")
	var all []int64
	for n := range int64(1002) {
		all = append(all, n)
	}
	putAll(t, r, "run", all...)
	assert.Len(t, names(t, r), len(all))
	assert.Len(t, asked.of(http.MethodGet), 1+2)
	require.NoError(t, r.Delete(t.Context(), refs(all...), batch.CSV))
	assert.Len(t, asked.of(http.MethodPost), 2)
	assert.Empty(t, names(t, r))

	stop := errors.New("enough")
	putAll(t, r, "run", 1, 2)
	assert.ErrorIs(t, r.List(t.Context(), func(Object) error { return stop }), stop)
}

func TestServerWithoutDeleteObjects(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
	}{{http.StatusNotImplemented, "NotImplemented"}, {http.StatusMethodNotAllowed, "MethodNotAllowed"}, {http.StatusBadRequest, "MissingContentMD5"}} {
		t.Run(c.code, func(t *testing.T) {
			var asked requests
			server := fakeStore(t, func(w http.ResponseWriter, r *http.Request) bool {
				asked.add(r)
				if isBulkDelete(r) {
					refuse(w, r, c.status, c.code, "no")
				}
				return isBulkDelete(r)
			})
			r := open(t, targetOf(t, "s3://bucket/p", server.URL)).Run("run")
			putAll(t, r, "run", 0, 1, 2, 3, 4)
			require.NoError(t, r.Delete(t.Context(), refs(0, 1, 2), batch.CSV))
			require.NoError(t, r.Delete(t.Context(), refs(3, 4), batch.CSV))
			assert.Empty(t, names(t, r))
			assert.Len(t, asked.of(http.MethodPost), 1, "it is remembered")
			assert.Len(t, asked.of(http.MethodDelete), 5)
		})
	}
}

// An answer that says 200 may still list objects that were not deleted.
func TestDeletionRefusedInside(t *testing.T) {
	server := fakeStore(t, func(w http.ResponseWriter, r *http.Request) bool {
		if isBulkDelete(r) {
			fmt.Fprint(w, `<DeleteResult><Error><Key>p/run/000000000001.csv</Key><Code>AccessDenied</Code><Message>retention</Message></Error></DeleteResult>`)
		}
		return isBulkDelete(r)
	})
	r := open(t, targetOf(t, "s3://bucket/p", server.URL)).Run("run")
	putAll(t, r, "run", 0, 1)
	err := r.Delete(t.Context(), refs(0, 1), batch.CSV)
	require.ErrorContains(t, err, "delete p/run/000000000001.csv: AccessDenied: retention")
	v, _ := classify(err)
	assert.Equal(t, loader.ClassPermission, v.Class)
}

func putForeign(t *testing.T, s *Store, name string) { putText(t, s, name, "foreign") }

func putText(t *testing.T, s *Store, name, text string) {
	t.Helper()
	_, err := s.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &s.bucket, Key: &name, Body: strings.NewReader(text)})
	require.NoError(t, err)
}

func textOf(t *testing.T, s *Store, name string) string {
	t.Helper()
	got, err := s.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &s.bucket, Key: &name})
	require.NoError(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return string(text)
}

func refs(numbers ...int64) []loader.Ref {
	all := make([]loader.Ref, len(numbers))
	for i, n := range numbers {
		all[i].ID.Number = n
	}
	return all
}

// A store that is away when files are opened can be waited for, as any other time.
func TestOpenFilesOfAStoreThatIsAway(t *testing.T) {
	server := fakeStore(t, nil)
	target := targetOf(t, "s3://bucket/p", server.URL)
	server.Close()
	_, err := OpenFiles(t.Context(), target, backendtest.Deps())
	require.Error(t, err)
	v := loader.VerdictOf(err)
	require.Equal(t, loader.ClassConnection, v.Class)
	require.True(t, v.Retry)
}

// Files are made once, whoever comes first.
func TestFiles(t *testing.T) {
	eachStore(t, func(t *testing.T, target loader.Target) {
		f := Files{open(t, target)}
		require.NoError(t, f.Create(t.Context(), "nightly/1", []byte("one")))
		require.ErrorIs(t, f.Create(t.Context(), "nightly/1", []byte("two")), fs.ErrExist)
		for _, name := range []string{"nightly/2", "nightly/3", "other"} {
			require.NoError(t, f.Write(t.Context(), name, []byte("one")))
			require.NoError(t, f.Write(t.Context(), name, []byte(name)))
		}
		text, err := f.Read(t.Context(), "nightly/1")
		require.NoError(t, err)
		assert.Equal(t, "one", string(text))
		_, err = f.Read(t.Context(), "nightly/4")
		require.ErrorIs(t, err, fs.ErrNotExist)
		listed := func() (names []string) {
			require.NoError(t, f.Names(t.Context(), "nightly/", func(name string) error {
				names = append(names, name)
				return nil
			}))
			return names
		}
		assert.Equal(t, []string{"nightly/1", "nightly/2", "nightly/3"}, listed())
		require.NoError(t, f.Remove(t.Context(), "nightly/1", "nightly/none", "nightly/3"))
		assert.Equal(t, []string{"nightly/2"}, listed())
		text, err = f.Read(t.Context(), "other")
		require.NoError(t, err)
		assert.Equal(t, "other", string(text))
	})
}
