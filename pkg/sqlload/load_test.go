package sqlload_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
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

func (c *conn) Claim(context.Context, loader.Ref) (sqlload.Sent, error) {
	err := c.step("claim")
	return sqlload.Sent{Claimed: !c.taken && err == nil, Taken: c.taken, Rows: c.rows}, err
}

func (c *conn) WhyNot(context.Context) error { return errTakenOver }

func (c *conn) send(ctx context.Context, ref loader.Ref) (sqlload.Sent, error) {
	return sqlload.ClaimThen(c, func(context.Context) (int64, []string, error) { return c.rows, c.warnings, c.step("rows") })(ctx, ref)
}

func (c *conn) Commit(context.Context) error   { return c.step("commit") }
func (c *conn) Close() error                   { return nil }
func (c *conn) Rollback(context.Context) error { return c.step("rollback") }

var (
	errBroken    = errors.New("broken")
	errTakenOver = &loader.TakenOverError{Run: "r"}
	errRefused   = &loader.Error{Op: "commit", Applied: loader.No, Err: errors.New("deferred constraint")}
)

func TestLoad(t *testing.T) {
	for name, c := range map[string]struct {
		conn  conn
		ack   loader.Ack
		steps string
	}{
		"new":           {conn{rows: 10}, loader.Ack{Rows: 10}, "claim rows commit"},
		"there already": {conn{rows: 10, taken: true}, loader.Ack{Rows: 10, AlreadyApplied: true}, "claim"},
	} {
		ack, err := sqlload.Load(t.Context(), &c.conn, loader.Ref{Rows: 10}, c.conn.send)
		require.NoError(t, err, name)
		assert.Equal(t, c.ack, ack, name)
		assert.Equal(t, c.steps, strings.Join(c.conn.steps, " "), name)
	}
	// A session whose claim was not inserted has nothing to commit, whatever it has sent.
	forgetful := &conn{}
	_, err := sqlload.Load(t.Context(), forgetful, loader.Ref{}, func(context.Context, loader.Ref) (sqlload.Sent, error) {
		return sqlload.Sent{Rows: 10}, nil
	})
	require.ErrorIs(t, err, errTakenOver)
	assert.Equal(t, []string{"rollback"}, forgetful.steps)
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
			_, err := sqlload.Load(t.Context(), &c.conn, loader.Ref{Rows: 10}, c.conn.send)
			require.EqualError(t, err, c.text)
			var known *loader.Error
			require.ErrorAs(t, err, &known)
			assert.Equal(t, c.applied, known.Applied)
			assert.Equal(t, c.steps, strings.Join(c.conn.steps, " "))
		})
	}
}

// answers is a connection that answers every query with one row, and on which nothing can be executed.
type answers struct {
	row    []string // none: no row
	closed bool
}

func (a *answers) Query(_ context.Context, _ string, each func([][]byte) error) error {
	if a.row == nil {
		return nil
	}
	var row [][]byte
	for _, v := range a.row {
		row = append(row, []byte(v))
	}
	return each(row)
}

func (a *answers) Exec(context.Context, string) (int64, error) { return 0, errBroken }
func (a *answers) Close() error                                { a.closed = true; return nil }

// A claim of another number of rows is not the batch's.
func TestFindClaim(t *testing.T) {
	for text, want := range map[string]loader.Applied{"": loader.No, "100": loader.Yes, "99": loader.Unknown} {
		a := &answers{}
		if text != "" {
			a.row = []string{text}
		}
		got, err := new(sqlload.State).FindClaim(t.Context(), a, "", loader.Ref{Rows: 100})
		require.NoError(t, err)
		assert.Equal(t, want, got.Applied, text)
		assert.Equal(t, want == loader.Unknown, got.Reason != "")
	}
}

// A transaction that cannot be rolled back ends with its connection.
func TestRollbackCloses(t *testing.T) {
	a := &answers{}
	require.Error(t, sqlload.Tx{Conn: a}.Rollback(t.Context()))
	assert.True(t, a.closed)
}
