package sqlload_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// conn is a scripted session that writes down what it is asked.
type conn struct {
	sqlload.Session
	taken    bool  // the claim is there already, and says rows
	rows     int64 // what the server counts
	warnings []string
	fail     map[string]error // by step

	steps []string
}

func (c *conn) step(name string) error {
	c.steps = append(c.steps, name)
	return c.fail[name]
}

func (c *conn) Claim(context.Context, loader.Ref) (bool, int64, error) {
	return c.taken, c.rows, c.step("claim")
}

func (c *conn) send(context.Context) (int64, []string, error) {
	return c.rows, c.warnings, c.step("rows")
}

func (c *conn) Commit(context.Context) error   { return c.step("commit") }
func (c *conn) Close() error                   { return nil }
func (c *conn) Rollback(context.Context) error { return c.step("rollback") }

var (
	errBroken  = errors.New("broken")
	errRefused = &loader.Error{Op: "commit", Applied: loader.No, Err: errors.New("deferred constraint")}
)

func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		conn  conn
		ack   loader.Ack
		steps string
	}{
		"new":              {conn{rows: 10}, loader.Ack{Rows: 10}, "claim rows commit"},
		"there already":    {conn{rows: 10, taken: true}, loader.Ack{Rows: 10, AlreadyApplied: true}, "claim rollback"},
		"failing rollback": {conn{rows: 10, taken: true, fail: map[string]error{"rollback": errBroken}}, loader.Ack{Rows: 10, AlreadyApplied: true}, "claim rollback"},
	} {
		t.Run(name, func(t *testing.T) {
			ack, err := sqlload.Load(t.Context(), &c.conn, loader.Ref{Rows: 10}, 10, c.conn.send)
			require.NoError(t, err)
			assert.Equal(t, c.ack, ack)
			assert.Equal(t, c.steps, strings.Join(c.conn.steps, " "))
		})
	}
}

func TestLoadFails(t *testing.T) {
	for name, c := range map[string]struct {
		conn    conn
		applied loader.Applied
		text    string
		steps   string
	}{
		"claim":           {conn{fail: map[string]error{"claim": errBroken}}, loader.No, "claim: broken", "claim rollback"},
		"rows":            {conn{fail: map[string]error{"rows": errBroken}}, loader.No, "load: broken", "claim rows rollback"},
		"rollback, too":   {conn{fail: map[string]error{"rows": errBroken, "rollback": errors.New("later")}}, loader.No, "load: broken", "claim rows rollback"},
		"commit in doubt": {conn{rows: 10, fail: map[string]error{"commit": errBroken}}, loader.Unknown, "commit: broken", "claim rows commit"},
		"commit refused":  {conn{rows: 10, fail: map[string]error{"commit": errRefused}}, loader.No, "commit: deferred constraint", "claim rows commit"},
		"too few rows":    {conn{rows: 9}, loader.No, "load: the server took 9 of 10 rows", "claim rows rollback"},
		"too many rows":   {conn{rows: 11}, loader.No, "load: the server took 11 of 10 rows", "claim rows rollback"},
		"a warning":       {conn{rows: 10, warnings: []string{"cut"}}, loader.No, "load: the server took 10 of 10 rows: cut", "claim rows rollback"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqlload.Load(t.Context(), &c.conn, loader.Ref{Rows: 10}, 10, c.conn.send)
			require.EqualError(t, err, c.text)
			var known *loader.Error
			require.ErrorAs(t, err, &known)
			assert.Equal(t, c.applied, known.Applied)
			assert.Equal(t, c.steps, strings.Join(c.conn.steps, " "))
		})
	}
}

// Rows that an earlier attempt left there are not sent again, and not counted.
func TestLoadSkips(t *testing.T) {
	c := &conn{rows: 6}
	ack, err := sqlload.Load(t.Context(), c, loader.Ref{Rows: 10}, 6, c.send)
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 6}, ack)
}
