package mysql

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A note is harmless, but for that of MySQL on a value which is cut off.
func TestWarningsThatCount(t *testing.T) {
	for of, want := range map[flavour][]string{
		mySQL:   {"Note 1265: Data truncated", "Warning 1264: Out of range"},
		mariaDB: {"Warning 1264: Out of range"},
	} {
		w := warnings{of: of, most: 2}
		for _, row := range []string{"Note 1051 Unknown", "Note 1265 Data truncated", "Warning 1264 Out of range"} {
			w.add(bytes.SplitN([]byte(row), []byte(" "), 3))
		}
		assert.Equal(t, want, w.texts(), of)
	}
}

// A value comes before the server's own words of where it is.
func TestRecordInWarning(t *testing.T) {
	for text, record := range map[string]int64{
		"Warning 1366: Incorrect integer value: 'x' for column `d`.`t`.`a` at row 3":                       3,
		"Warning 1366: Incorrect integer value: 'column b at row 1' for column `d`.`t`.`a` at row 4":       4,
		"Warning 1062: Duplicate entry 'seat at row 7' for key 'PRIMARY'":                                  0,
		"load: Error 1366 (22007): Incorrect integer value: 'y' for column `d`.`t`.`a` at row 12\n":        12,
		"Warning 1261: Row 5 doesn't contain data for all columns; Data truncated for column 'a' at row 5": 5,
	} {
		at := recordIn(text)
		if record == 0 {
			assert.Nil(t, at, text)
			continue
		}
		require.NotNil(t, at, text)
		assert.Equal(t, record, at.Record, text)
		assert.Equal(t, "a", at.Column, text)
	}
}
