package mysql

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/loader"
)

// A trigger that sees a row before it is in is named before the first one, and for the error of a count that differs.
func TestEffects(t *testing.T) {
	eachServer(t, func(t *testing.T, s *testServer) {
		s.exec(t, "CREATE TABLE "+s.table1()+" (document_id BIGINT, payload LONGBLOB) ENGINE = InnoDB")
		on := func(name, when string) {
			s.exec(t, "CREATE TRIGGER "+tableName{s.target.Database, name}.quoted()+" "+when+" ON "+s.table1()+" FOR EACH ROW SET @n = 1")
		}
		on("after it", "AFTER INSERT")
		on("update", "BEFORE UPDATE")
		i := loader.Intent{Preparation: preparation(documents(t, 20), contractOf(methodLoadData, 2)), Workers: 1, BatchBytes: 1000}
		names := func() (all []string) {
			for _, f := range backendtest.Doctor(t, New(), s.deps, s.table("t"), i) {
				if f.Check == "triggers, policies" {
					all = append(all, f.Found)
				}
			}
			return all
		}
		assert.Empty(t, names())
		on("seen first", "BEFORE INSERT")
		assert.Equal(t, []string{s.table1() + " has trigger seen first, which may change rows or refuse them"}, names())
		db := s.open(t, s.table("t"), i.Preparation)
		found, err := db.Suspects(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"trigger seen first of table " + s.table1() + ", which may change rows or refuse them (choose another --table)"}, found)
	})
}

// AUTO_INCREMENT moves by itself; a sequence of MariaDB does not.
func TestSequences(t *testing.T) {
	s := newTestServer(t, backendtest.Server(t, "TERAPUSH_TEST_MARIADB"))
	own := tableName{s.target.Database, "a`b"}.quoted()
	s.exec(t, "CREATE SEQUENCE "+own)
	s.exec(t, "CREATE TABLE "+s.table1()+" (document_id BIGINT DEFAULT NEXTVAL("+own+") PRIMARY KEY, payload LONGBLOB)")
	db := s.open(t, s.table("t"), preparation(documents(t, 20), contractOf(methodLoadData, 2)))
	found, err := db.Sequences(t.Context(), 1099, false)
	require.NoError(t, err)
	assert.Equal(t, []string{"SELECT SETVAL(" + own + ", 1099)"}, found)
	next := func() int64 { return s.count(t, "SELECT NEXTVAL("+own+")") }
	assert.EqualValues(t, 1, next())
	_, err = db.Sequences(t.Context(), 1099, true)
	require.NoError(t, err)
	assert.EqualValues(t, 1100, next())
	s.exec(t, "DO SETVAL("+own+", 5000)")
	found, err = db.Sequences(t.Context(), 1099, true)
	require.NoError(t, err)
	assert.Empty(t, found)

	s.exec(t, "DROP TABLE "+s.table1())
	s.exec(t, "CREATE TABLE "+s.table1()+" (document_id BIGINT AUTO_INCREMENT PRIMARY KEY, payload LONGBLOB)")
	db = s.open(t, s.table("t"), preparation(documents(t, 20), contractOf(methodLoadData, 2)))
	found, err = db.Sequences(t.Context(), 1099, true)
	require.NoError(t, err)
	assert.Empty(t, found)
}

func TestDescribeAll(t *testing.T) {
	everyServer(t, func(t *testing.T, s *testServer) {
		in := func(name string) string { return tableName{s.target.Database, name}.quoted() }
		s.exec(t, "CREATE TABLE "+in("a b")+" (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT NOT NULL, b VARCHAR(20) DEFAULT 'x', UNIQUE (a, b(5)))")
		s.exec(t, "CREATE TABLE "+in("c")+" (x INT, y ENUM('glad', 'sad'), r BIGINT, e INT AS (x + 1) STORED, CHECK (x > 5), KEY (y), "+
			"FOREIGN KEY (r) REFERENCES "+in("a b")+" (id))")
		s.exec(t, "CREATE TABLE "+in("l")+" (a VARCHAR(9)) PARTITION BY LIST COLUMNS (a) (PARTITION p0 VALUES IN ('x', 'z'), PARTITION p1 VALUES IN ('y'))")
		s.exec(t, "CREATE TABLE "+in("r")+" (a INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (9), PARTITION p1 VALUES LESS THAN (1000))")
		s.exec(t, "CREATE VIEW "+in("v")+" AS SELECT 1")
		open := func(table string) loader.Loader {
			to := s.target
			to.Table = table
			return backendtest.Open(t, New(), to, s.deps)
		}
		unfit := backendtest.DescribedAlike(t, s.target.Database, []string{"a b", "c", "l", "r"}, open)
		assert.Equal(t, map[string]string{"v": "it is a view"}, unfit)

		const byDays = "CREATE TABLE %s (a %s) PARTITION BY RANGE (%s) (PARTITION p0 VALUES LESS THAN (0), PARTITION p1 VALUES LESS THAN (%s))"
		for function, of := range map[string][2]string{
			"year": {"DATE", "2025"}, "to_days": {"DATETIME", "739617"}, "unix_timestamp": {"TIMESTAMP", "1735689600"},
		} {
			s.exec(t, fmt.Sprintf(byDays, in(function), of[0], function+"(a)", of[1]))
			d, err := loader.FeaturesOf(open(function)).Describer.Describe(t.Context())
			require.NoError(t, err)
			require.Len(t, d.Checks, 1, function)
			require.Regexp(t, "^`?a`? < '2025-01-01( 00:00:00(\\.0+)?)?'$", d.Checks[0])
		}
	})
}
