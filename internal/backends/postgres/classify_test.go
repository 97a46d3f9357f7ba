package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/pkg/loader"
)

func said(severity, code string) error {
	return &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: severity, Code: code, Message: "…"}
}

func TestClassify(t *testing.T) {
	var (
		reset   = &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ECONNRESET)}
		refused = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	)
	for name, c := range map[string]struct {
		err  error
		want loader.Verdict
	}{
		"connection exception":       {said("ERROR", "08006"), verdict("No retry connection")},
		"connection lost":            {said("FATAL", "08006"), verdict("Unknown retry dead connection")},
		"terminated by admin":        {said("FATAL", "57P01"), verdict("Unknown retry dead shutdown")},
		"crash of another backend":   {said("FATAL", "57P02"), verdict("Unknown retry dead shutdown")},
		"starting up":                {said("FATAL", "57P03"), verdict("Unknown retry dead shutdown")},
		"database dropped":           {said("FATAL", "57P04"), verdict("Unknown dead missing")},
		"panic":                      {said("PANIC", "XX000"), verdict("Unknown retry dead other")},
		"too many connections":       {said("FATAL", "53300"), verdict("Unknown retry dead throttled")},
		"out of memory":              {said("ERROR", "53200"), verdict("No retry throttled")},
		"disk full":                  {said("ERROR", "53100"), verdict("No disk_full")},
		"serialization failure":      {said("ERROR", "40001"), verdict("No retry lock")},
		"deadlock":                   {said("ERROR", "40P01"), verdict("No retry lock")},
		"lock timeout":               {said("ERROR", "55P03"), verdict("No retry lock")},
		"unique violation":           {said("ERROR", "23505"), verdict("No constraint")},
		"not null violation":         {said("ERROR", "23502"), verdict("No constraint")},
		"bad binary":                 {said("ERROR", "22P03"), verdict("No data")},
		"bad text":                   {said("ERROR", "22P02"), verdict("No data")},
		"no privilege":               {said("ERROR", "42501"), verdict("No permission")},
		"wrong password":             {said("FATAL", "28P01"), verdict("Unknown dead permission")},
		"not in pg_hba":              {said("FATAL", "28000"), verdict("Unknown dead permission")},
		"no table":                   {said("ERROR", "42P01"), verdict("No missing")},
		"no column":                  {said("ERROR", "42703"), verdict("No missing")},
		"no database":                {said("FATAL", "3D000"), verdict("Unknown dead missing")},
		"no schema":                  {said("ERROR", "3F000"), verdict("No missing")},
		"limit exceeded":             {said("ERROR", "54000"), verdict("No too_large")},
		"statement timeout":          {said("ERROR", "57014"), verdict("No retry timeout")},
		"idle in transaction":        {said("FATAL", "25P03"), verdict("Unknown retry dead timeout")},
		"standby":                    {said("ERROR", "25006"), verdict("No retry shutdown")},
		"syntax":                     {said("ERROR", "42601"), verdict("No other")},
		"internal":                   {said("ERROR", "XX000"), verdict("No retry other")},
		"corrupted":                  {said("ERROR", "XX001"), verdict("No other")},
		"old server, no such field":  {&pgconn.PgError{Severity: "ERROR", Code: "40001"}, verdict("No retry lock")},
		"no code":                    {&pgconn.PgError{Severity: "ERROR"}, verdict("No other")},
		"reset":                      {reset, verdict("Unknown retry dead connection")},
		"refused":                    {refused, verdict("Unknown retry dead connection")},
		"server closed":              {io.ErrUnexpectedEOF, verdict("Unknown retry dead connection")},
		"closed here":                {fmt.Errorf("write failed: %w", net.ErrClosed), verdict("Unknown retry dead connection")},
		"network timeout":            {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, verdict("Unknown retry dead timeout")},
		"deadline":                   {fmt.Errorf("x: %w", context.DeadlineExceeded), verdict("Unknown retry dead timeout")},
		"cancelled":                  {fmt.Errorf("%w: %w", context.Canceled, reset), verdict("Unknown dead other")},
		"rows":                       {&loader.RowsError{Sent: 2, Acknowledged: 1}, verdict("No rows")},
		"anything else":              {errors.New("?"), verdict("Unknown dead other")},
		"what the session knows":     {&loader.Error{Applied: loader.No, Err: reset}, verdict("No retry dead connection")},
		"a commit refused in doubt":  {&loader.Error{Applied: loader.Unknown, Err: said("ERROR", "40001")}, verdict("Unknown retry lock")},
		"pgconn's safe to retry lie": {pgconn.ErrConnClosed, verdict("Unknown retry dead connection")},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, postgres.New().Classify(c.err))
		})
	}
}

// verdict reads "No retry dead class".
func verdict(text string) loader.Verdict {
	var v loader.Verdict
	for _, word := range strings.Fields(text) {
		switch word {
		case "No":
			v.Applied = loader.No
		case "Unknown":
			v.Applied = loader.Unknown
		case "retry":
			v.Retry = true
		case "dead":
			v.SessionDead = true
		default:
			v.Class = loader.Class(word)
		}
	}
	return v
}

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
