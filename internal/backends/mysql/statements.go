package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// statements writes the SQL about one table, with or without a server.
type statements struct {
	sqlload.Statements
	flavour flavour
	binary  map[string]bool // columns of the table that are BINARY, in small letters
}

func newStatements(n tableName, f flavour, s rows.Schema) statements {
	return statements{
		Statements: sqlload.Statements{Dialect: dialect(f), Schema: s, Table: n.quoted(), Claims: n.claimsTable().quoted()},
		flavour:    f,
	}
}

// statements are those about the table in its state.
func (l *opened) statements(s *sqlload.State) statements {
	st := statements{Statements: s.Statements, flavour: l.server.flavour, binary: make(map[string]bool)}
	if s.Relation != nil {
		for _, c := range s.Relation.Columns {
			st.binary[strings.ToLower(c.Name)] = c.Is.Name == "binary"
		}
	}
	return st
}

// createTable creates the target table. Without a primary key InnoDB stores the rows in the order of their arrival, by
// a hidden key of six bytes, which is the fastest load there is.
func (s statements) createTable() string {
	var lines []string
	for _, c := range s.Schema.Columns {
		lines = append(lines, "  "+s.Define(c))
	}
	keys, _ := s.Constraints()
	for _, key := range keys {
		lines = append(lines, "  "+key)
	}
	if s.flavour == singleStore {
		lines = append(lines, "  SHARD KEY ("+quote(s.LeadingNames()[0])+")", "  SORT KEY ("+s.LeadingColumns()+")")
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s\n)%s COMMENT = '%s'",
		s.Table, strings.Join(lines, ",\n"), s.engine(), loader.MadeBy)
}

// engine names one that rolls back, where the server's default may not.
func (s statements) engine() string {
	if s.flavour == singleStore || s.flavour == tiDB {
		return ""
	}
	return " ENGINE = InnoDB"
}

// loadData asks for the registered reader. FIELDS and LINES have the defaults, which are batch.TSV's. Without a
// CHARACTER SET clause the database's would be used, not the connection's, and gbk, big5 or sjis would take raw bytes
// for escapes. OceanBase takes raw bytes in utf8mb4 as they are, and with "binary" encodes them (seekdb 1.4.0).
func (s statements) loadData(reader string, l *batch.Layout) string {
	charset := "utf8mb4"
	raw := slices.ContainsFunc(s.Schema.Columns, func(c rows.Column) bool { return c.Type == rows.Bytes })
	if raw && s.flavour != oceanBase {
		charset = "binary"
	}
	columns, set := s.loadedColumns(charset)
	if l != nil {
		columns, set = s.fields(l.Columns), ""
	}
	return fmt.Sprintf("LOAD DATA LOCAL INFILE 'Reader::%s' INTO TABLE %s CHARACTER SET %s (%s)%s",
		reader, s.Table, charset, columns, set)
}

// loadedColumns returns the list of columns and the SET clause, for those whose values have to be converted: MySQL
// takes a JSON document only as text (error 3144), which nothing is in a file of "binary", a BINARY(16) only the bytes
// of a UUID, and a VECTOR no text. MariaDB's UUID, INET6 and the like take what is no text for their 16 bytes.
func (s statements) loadedColumns(charset string) (columns, set string) {
	var names, sets []string
	for i, c := range s.Schema.Columns {
		name, value := quote(c.Name), ""
		switch {
		case c.Type == rows.UUID && s.binary[strings.ToLower(c.Name)]:
			value = "UNHEX(REPLACE(%s, '-', ''))"
		case c.Type == rows.Float32s && s.flavour == mySQL:
			value = "STRING_TO_VECTOR(%s)"
		case charset != "binary":
		case c.Type == rows.JSON, c.Type == rows.Arrays, c.SQL != "", c.Type == rows.UUID && s.flavour == mariaDB:
			value = "CONVERT(%s USING utf8mb4)"
		}
		if value != "" {
			variable := fmt.Sprintf("@terapush_%d", i+1)
			sets = append(sets, name+" = "+fmt.Sprintf(value, variable))
			name = variable
		}
		names = append(names, name)
	}
	if len(sets) > 0 {
		set = " SET " + strings.Join(sets, ", ")
	}
	return strings.Join(names, ", "), set
}

// fields are the columns of the fields of a user's file. One that goes into no column goes into a variable.
func (s statements) fields(columns []string) string {
	names := make([]string, len(columns))
	for i, name := range columns {
		names[i] = "@terapush_skipped"
		if name != "" {
			names[i] = s.Quoted(name)
		}
	}
	return strings.Join(names, ", ")
}

// countRows keeps how many rows the last statement changed, beside its warnings. MySQL forgets those over any SELECT.
const (
	countRows   = "GET DIAGNOSTICS @terapush_rows = ROW_COUNT"
	countClaims = "GET DIAGNOSTICS @terapush_claims = ROW_COUNT"
)

// claimAndLoad is, in one message, the claim and the load, and what is to be known of both before the commit. The
// server shows each statement by itself, so both have the tag.
func (s statements) claimAndLoad(r loader.Ref, connection int64, reader string, l *batch.Layout) string {
	return strings.Join([]string{
		tag(r.ID) + s.insertClaim(r, connection), countClaims, tag(r.ID) + s.loadData(reader, l), countRows, "SHOW WARNINGS",
		"SELECT @terapush_claims, @terapush_rows",
	}, "; ")
}

// insertHead precedes a body of batch.Values.
func (s statements) insertHead() string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES ", s.Table, s.Columns(s.Schema))
}
