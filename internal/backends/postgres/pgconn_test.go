package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
)

// A lost answer makes pgconn's Exec say "conn closed" and call it safe to retry. If this test fails, pgconn was
// repaired and socket.go can go.
func TestPgconnForgetsWhyTheConnectionBroke(t *testing.T) {
	c, err := pgconn.ParseConfig("host=127.0.0.1 user=u dbname=d sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	f := newFake(t, func(*fakeConn, string) bool { return false })
	c.Port = f.port()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgconn.ConnectConfig(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(ctx, "COMMIT").ReadAll()
	assert.ErrorIs(t, err, pgconn.ErrConnClosed)
	assert.True(t, pgconn.SafeToRetry(err))
}
