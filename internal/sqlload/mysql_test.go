package sqlload_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/sqlload"
)

func TestMySQLErrors(t *testing.T) {
	for _, c := range []struct {
		err                    error
		broken, authentication bool
	}{
		{mysql.ErrInvalidConn, true, false},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true, false},
		{fmt.Errorf("connect: %w", mysql.ErrOldPassword), false, true},
		{mysql.ErrPktTooLarge, false, false},
		{&mysql.MySQLError{Number: 1213, Message: "EOF"}, false, false},
		{errors.New("EOF"), false, false},
		{nil, false, false},
	} {
		assert.Equal(t, c.broken, sqlload.MySQLBroken(c.err), "%v", c.err)
		assert.Equal(t, c.authentication, sqlload.MySQLAuthentication(c.err), "%v", c.err)
	}
}
