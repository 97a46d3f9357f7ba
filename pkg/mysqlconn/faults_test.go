package mysqlconn_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/mysqlconn"
)

func TestSQLState(t *testing.T) {
	server := &mysql.MySQLError{Number: 1690, SQLState: [5]byte([]byte("22003")), Message: "BIGINT value is out of range"}
	assert.Equal(t, "22003", mysqlconn.SQLState(fmt.Errorf("ask: %w", server)))
	assert.Empty(t, mysqlconn.SQLState(errors.New("22003")))
	assert.Empty(t, mysqlconn.SQLState(nil))
}
