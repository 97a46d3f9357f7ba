package mysql

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/loader"
)

// LOAD DATA drops what is sent for a generated column, and zeroes a column that has no default, without an error.
func TestColumnsThatALoadCannotFill(t *testing.T) {
	const (
		fits      = ""
		generated = "column payload is generated: it holds what the server computes, and no row's value (choose another --table, or a --dataset that fits it: terapush inspect writes one, or --like that table)"
		noDefault = ") is unknown to the dataset and has no default (choose another --table, or a --dataset that fits it: terapush inspect writes one, or --like that table)"
	)
	eachServer(t, func(t *testing.T, s *testServer) {
		for columns, want := range map[string]string{
			"document_id BIGINT, payload LONGBLOB AS (REPEAT('x', 8)) STORED":                              generated,
			"document_id BIGINT, payload LONGBLOB AS (REPEAT('x', 8)) VIRTUAL":                             generated,
			"document_id BIGINT, payload LONGBLOB, n DATETIME NOT NULL ON UPDATE CURRENT_TIMESTAMP":        noDefault,
			"document_id BIGINT, payload LONGBLOB, n INT NOT NULL":                                         noDefault,
			"document_id BIGINT, payload LONGBLOB, n INT AS (1) STORED, m INT AS (2) VIRTUAL":              fits,
			"document_id BIGINT, payload LONGBLOB, n INT NOT NULL DEFAULT 1 INVISIBLE, m INT NULL":         fits,
			"document_id BIGINT, payload LONGBLOB, n DATETIME NOT NULL DEFAULT NOW() ON UPDATE NOW()":      fits,
			"document_id BIGINT, payload LONGBLOB, n DATETIME NULL ON UPDATE NOW(), m INT DEFAULT (1 + 1)": fits,
			"document_id BIGINT, payload LONGBLOB, n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY":           fits,
			"document_id BIGINT AUTO_INCREMENT PRIMARY KEY, payload LONGBLOB INVISIBLE DEFAULT ('x')":      fits,
			"document_id BIGINT, payload TINYBLOB":                                                         "column payload is tinyblob, want LONGBLOB",
		} {
			s.fits(t, columns, want)
		}
		if strings.HasSuffix(t.Name(), "/mysql") { // MariaDB refuses to make such a column
			s.fits(t, "document_id BIGINT, payload LONGBLOB, n INT NOT NULL INVISIBLE", noDefault)
		}
	})
}

// fits makes table t anew and checks whether a run may load it.
func (s *testServer) fits(t *testing.T, columns, want string) {
	t.Helper()
	s.exec(t, "DROP TABLE IF EXISTS "+s.table1())
	s.exec(t, "CREATE TABLE "+s.table1()+" ("+columns+")")
	tables := s.tables(t)
	tables.Preparation = preparation(documents(t, 512), contractOf(methodLoadData, 2))
	tables.Preparation.Create = loader.CreateIfMissing
	_, _, err := tables.Prepare(t, nil)
	if want == "" {
		assert.NoError(t, err, columns)
		return
	}
	assert.Contains(t, loader.Explain(err), want, columns)
}
