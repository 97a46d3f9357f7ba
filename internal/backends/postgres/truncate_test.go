package postgres_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// A table is emptied and stays as it is; what it would cost to lose is checked before.
func TestTruncate(t *testing.T) {
	to := target(t)
	l := open(t, to)
	p := preparation(t, loader.CreateTruncate)
	made, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.True(t, made.Created, "a missing one is made")

	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "CREATE INDEX mine ON "+to.Table+" (document_id); INSERT INTO "+to.Table+" VALUES (1, 'x'); "+
		"INSERT INTO "+schema+".terapush_claims VALUES ('another', 0, 0, 1)")
	emptied, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.False(t, emptied.Created)
	assert.False(t, emptied.HasRows)
	assert.NotEqual(t, made.Identity, emptied.Identity)
	assert.Equal(t, [][]string{{"0"}}, sql(t, "SELECT count(*) FROM "+to.Table))
	assert.Equal(t, [][]string{{"mine"}}, sql(t, "SELECT indexname FROM pg_indexes WHERE indexname = 'mine' AND schemaname = '"+schema+"'"))
	assert.Equal(t, [][]string{{"1"}}, sql(t, "SELECT count(*) FROM "+schema+".terapush_claims"), "as after recreate")

	// The identity is the one that a resume will find.
	again, err := l.Prepare(t.Context(), preparation(t, loader.CreateNever))
	require.NoError(t, err)
	assert.Equal(t, emptied.Identity, again.Identity)

	sql(t, "INSERT INTO "+to.Table+" VALUES (1, 'x'); COMMENT ON TABLE "+to.Table+" IS NULL")
	_, err = l.Prepare(t.Context(), p)
	require.ErrorContains(t, err, "so it is not emptied")
	p.MayDrop = to.Table
	sql(t, "DROP TABLE "+schema+".terapush_claims; CREATE TABLE "+schema+".terapush_claims (run text)")
	_, err = l.Prepare(t.Context(), p)
	require.ErrorContains(t, err, "no unique key on exactly (run, batch)")
	sql(t, "DROP TABLE "+schema+".terapush_claims; ALTER TABLE "+to.Table+" ALTER document_id TYPE integer")
	_, err = l.Prepare(t.Context(), p)
	require.ErrorContains(t, err, "column document_id is integer, want bigint")
	assert.Equal(t, [][]string{{"1"}}, sql(t, "SELECT count(*) FROM "+to.Table), "refused before anything was lost")
	sql(t, "ALTER TABLE "+to.Table+" ALTER document_id TYPE bigint")
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
	assert.Equal(t, [][]string{{"0"}}, sql(t, "SELECT count(*) FROM "+to.Table))
}
