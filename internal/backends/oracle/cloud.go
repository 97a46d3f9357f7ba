package oracle

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/rows"
)

// Method cloud-copy reads objects by INSERT … SELECT from an external table, in the transaction of a claim.
// DBMS_CLOUD.COPY_DATA commits by itself: after a lost answer it would be unknown whether its rows are in.

// externalTable is the name of a commit group's external table. It is used unquoted and as a literal, so it has only
// capital letters, digits and underscores.
func externalTable(run string, group int64) string {
	return fmt.Sprintf("%s%012d", externalPrefix(run), group)
}

func externalPrefix(run string) string {
	return "TERAPUSH_" + strings.ToUpper(strings.ReplaceAll(run, "-", "_")) + "_G"
}

// isExternal reports whether name is an external table of the run, and not of one whose id has the same prefix.
func isExternal(name, run string) bool {
	group, found := strings.CutPrefix(name, externalPrefix(run))
	return found && len(group) == 12 && strings.Trim(group, "0123456789") == ""
}

// createExternal creates the external table over a group's objects. They are named one by one, so that the credential
// need not list the bucket and nothing else in it is read. No row may be rejected.
func (s statements) createExternal(table string, uris []string) string {
	columns, fields := make([]string, len(s.Schema.Columns)), make([]string, len(s.Schema.Columns))
	embedded := false
	for i, c := range s.Schema.Columns {
		name := s.Identifier(c.Name)
		columns[i], fields[i] = name+" "+externalType(c), name+" "+fieldType(c)
		embedded = embedded || c.Type.Variable() && !c.Plain
	}
	kind := "csv without embedded" // the server may split objects
	if embedded {
		kind = "csv with embedded" // line feeds in quotes
	}
	credential := ""
	if s.options.credential != "" {
		credential = ", credential_name => " + sqlload.Literal(s.options.credential)
	}
	return fmt.Sprintf("BEGIN DBMS_CLOUD.CREATE_EXTERNAL_TABLE(table_name => %s%s, file_uri_list => %s, "+
		"column_list => %s, field_list => %s, format => %s); END;", sqlload.Literal(table), credential,
		clob(strings.Join(uris, ",")), clob(strings.Join(columns, ", ")), clob(strings.Join(fields, ", ")),
		sqlload.Literal(`{"type":"`+kind+`","characterset":"AL32UTF8","trimspaces":"notrim","rejectlimit":"0"}`))
}

// externalType is a column's type in the external table. Decimals are texts, since reading them as numbers depends on
// the session's decimal point.
func externalType(c rows.Column) string {
	if c.Type == rows.Decimal {
		return fmt.Sprintf("VARCHAR2(%d BYTE)", decimalBytes(c))
	}
	return columnType(c)
}

// decimalBytes is the longest text of a decimal: minus, digits, a leading zero and the point.
func decimalBytes(c rows.Column) int { return c.Digits + len("-0.") }

// fieldType is the type of a field in a CSV object, whose length includes quotes; the default is 255 bytes.
func fieldType(c rows.Column) string {
	switch c.Type {
	case rows.Int64:
		return "CHAR(20)"
	case rows.Decimal:
		return fmt.Sprintf("CHAR(%d)", decimalBytes(c))
	case rows.Date:
		return `CHAR(10) DATE_FORMAT DATE MASK "YYYY-MM-DD"`
	case rows.Timestamp:
		return `CHAR(26) DATE_FORMAT TIMESTAMP MASK "` + microsMask + `"`
	default:
		return fmt.Sprintf("CHAR(%d)", 2*max(c.MaxBytes, 1)+2)
	}
}

// literalBytes, doubled by quoting, is less than the 32767 bytes of a literal in PL/SQL.
const literalBytes = 16_000

// clob is an ASCII text of any length in PL/SQL.
func clob(text string) string {
	if len(text) <= literalBytes {
		return sqlload.Literal(text)
	}
	var parts []string
	for part := range slices.Chunk([]byte(text), literalBytes) {
		parts = append(parts, "TO_CLOB("+sqlload.Literal(string(part))+")")
	}
	return strings.Join(parts, " || ")
}

// fromExternal inserts the rows of the external table.
func (s statements) fromExternal(table string) string {
	values := make([]string, len(s.Schema.Columns))
	for i, c := range s.Schema.Columns {
		values[i] = s.Identifier(c.Name)
		if c.Type == rows.Decimal {
			format := strings.Repeat("9", max(c.Digits-c.Scale, 1)) + "D" + strings.Repeat("9", c.Scale)
			values[i] = fmt.Sprintf("TO_NUMBER(%s, '%s', %s)", values[i], format, withPoint)
		}
	}
	return s.into() + " SELECT " + strings.Join(values, ", ") + " FROM " + table
}

func dropExternal(table string) string { return "DROP TABLE " + table }

// selectExternals lists the external tables of a run, and of runs whose ids have the same prefix.
func selectExternals(run string) string {
	return "SELECT t.table_name FROM all_external_tables t WHERE t.owner = " + ownerOf("") + " AND t.table_name LIKE " +
		sqlload.Literal(strings.ReplaceAll(externalPrefix(run), "_", `\_`)+"%") + ` ESCAPE '\'`
}

// uriOf is an object's URI for DBMS_CLOUD, in Amazon's store or one that is compatible (DBMS_CLOUD URI formats, "Amazon
// S3 URI Format" and "Amazon S3-Compatible URI Format").
func uriOf(a objstore.Access, name string) string {
	segments := strings.Split(name, "/")
	for i, text := range segments {
		segments[i] = url.PathEscape(text) // also commas, which separate URIs
	}
	path := strings.Join(segments, "/")
	switch {
	case a.Endpoint != "":
		return strings.TrimSuffix(a.Endpoint, "/") + "/" + a.Bucket + "/" + path
	case a.PathStyle || strings.Contains(a.Bucket, "."): // no certificate covers a bucket with dots
		return "https://s3." + a.Region + ".amazonaws.com/" + a.Bucket + "/" + path
	}
	return "https://" + a.Bucket + ".s3." + a.Region + ".amazonaws.com/" + path
}
