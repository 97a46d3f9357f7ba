package doris_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/doris"
)

// scripted starts a cluster with a fault in every load, or in the first only.
func scripted(t *testing.T, kind doris.Kind, f doris.Fault) *doris.Cluster {
	c, _ := start(t, doris.Options{Script: func(r doris.Request) doris.Fault {
		if r.Kind == kind && r.Attempt == 1 && (kind != doris.Statement || strings.HasPrefix(r.SQL, "INSERT")) {
			return f
		}
		return doris.Fault{}
	}})
	return c
}

func TestFaultsOfLoads(t *testing.T) {
	const body = "1\ta\n2\tb\n"
	for name, want := range map[string]struct {
		fault   doris.Fault
		cut     bool
		status  string
		message string
		rows    int64  // after the first attempt
		again   string // the second attempt's status
	}{
		"cut answer":      {doris.Fault{CutAnswer: true}, true, "", "", 2, "Label Already Exists"},
		"cut body":        {doris.Fault{CutBody: 3}, true, "", "", 0, "Success"},
		"half an answer":  {doris.Fault{Truncate: true}, true, "", "", 2, "Label Already Exists"},
		"versions":        {doris.Fault{Fail: doris.TooManyVersions}, false, "Fail", "-235", 0, "Success"},
		"filtered":        {doris.Fault{Fail: doris.TooManyFiltered}, false, "Fail", "too many filtered rows", 0, "Success"},
		"no backend":      {doris.Fault{Fail: doris.NoBackend}, false, "Fail", "no available BE", 0, "Success"},
		"running":         {doris.Fault{Existing: "RUNNING"}, false, "Label Already Exists", "status [RUNNING]", 0, "Success"},
		"finished":        {doris.Fault{Existing: "FINISHED"}, false, "Label Already Exists", "status [FINISHED]", 0, "Success"},
		"precommitted":    {doris.Fault{Existing: "PRECOMMITTED"}, false, "Label Already Exists", "status [PRECOMMITTED]", 0, "Success"},
		"label replaced":  {doris.Fault{Label: "another"}, false, "Success", "OK", 2, "Success"},
		"publish timeout": {doris.Fault{PublishTimeout: make(chan struct{})}, false, "Publish Timeout", "publish timeout", 0, "Label Already Exists"},
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, doris.Load, want.fault)
			a, err := put(t, c, "d/t", body, "label:l", "group_commit:off_mode")
			if want.cut {
				require.Error(t, err)
			} else {
				require.NoError(t, err)
				assert.Equal(t, want.status, a.Status)
				assert.Contains(t, a.Message, want.message)
			}
			assert.Equal(t, want.rows, c.Rows("d.t"))
			assert.Equal(t, want.again, mustPut(t, c, body, "label:l", "group_commit:off_mode").Status)
		})
	}
}

func TestHTTPStatusOfBackend(t *testing.T) {
	for _, status := range []int{401, 503} {
		c := scripted(t, doris.Load, doris.Fault{HTTPStatus: status})
		a, _ := put(t, c, "d/t", "1\ta\n", "label:l")
		assert.Equal(t, status, a.Code)
		assert.Zero(t, c.Rows("d.t"))
	}
}

// A backend that refuses early does not read: the answer may get lost in the reset, the rows never get in.
func TestRefusesEarly(t *testing.T) {
	c := scripted(t, doris.Load, doris.Fault{RefuseEarly: "[E-216]body size exceeds"})
	large := strings.Repeat("1\ta\n", 4<<20)
	if a, err := put(t, c, "d/t", large, "label:l"); err == nil {
		assert.Equal(t, "Fail", a.Status)
	}
	assert.Equal(t, "ABORTED", c.State("d", "l"))
	assert.Zero(t, c.Rows("d.t"))
}

func TestPublishTimeoutPasses(t *testing.T) {
	visible := make(chan struct{})
	c := scripted(t, doris.Load, doris.Fault{PublishTimeout: visible})
	assert.Equal(t, "Publish Timeout", mustPut(t, c, "1\ta\n", "label:l").Status)
	assert.Equal(t, "COMMITTED", c.State("d", "l"))
	close(visible)
	assert.Eventually(t, func() bool { return c.Rows("d.t") == 1 }, timeLimit, tick)
	assert.Equal(t, "VISIBLE", c.State("d", "l"))
}

// A load that is still under way has its label, and goes on when it may.
func TestHold(t *testing.T) {
	goOn := make(chan struct{})
	c := scripted(t, doris.Load, doris.Fault{Hold: goOn})
	done := make(chan answer)
	go func() { done <- mustPut(t, c, "1\ta\n", "label:l") }()
	assert.Eventually(t, func() bool { return c.State("d", "l") == "PREPARE" }, timeLimit, tick)
	assert.Equal(t, "RUNNING", mustPut(t, c, "1\ta\n", "label:l").ExistingJobStatus)
	close(goOn)
	assert.Equal(t, "Success", (<-done).Status)
}

// redirected asks the frontend as a client with a patient transport does, and follows nothing.
func redirected(ctx context.Context, c *doris.Cluster) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+c.HTTPAddress()+"/api/d/t/_stream_load", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Expect", "100-continue")
	r.SetBasicAuth("root", "")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	return answer, err
}

func TestFaultsOfFrontend(t *testing.T) {
	answer, err := redirected(t.Context(), scripted(t, doris.Redirect, doris.Fault{HTTPS: true}))
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:8050/api/d/t/_stream_load", answer.Header.Get("Location"))

	answer, err = redirected(t.Context(), scripted(t, doris.Redirect, doris.Fault{HTTPStatus: 503}))
	require.NoError(t, err)
	assert.Equal(t, 503, answer.StatusCode)

	_, err = redirected(t.Context(), scripted(t, doris.Redirect, doris.Fault{CutAnswer: true}))
	require.Error(t, err)

	slow := make(chan struct{})
	c := scripted(t, doris.Redirect, doris.Fault{Hold: slow})
	done := make(chan error)
	go func() {
		_, err := redirected(t.Context(), c)
		done <- err
	}()
	assert.Eventually(t, func() bool { return asked(c, doris.Redirect) == 1 }, timeLimit, tick)
	select {
	case <-done:
		t.Fatal("answered while it was held")
	default:
	}
	close(slow)
	require.NoError(t, <-done)
}

// asked counts the requests of a kind.
func asked(c *doris.Cluster, kind doris.Kind) (n int) {
	for _, r := range c.Requests() {
		if r.Kind == kind {
			n++
		}
	}
	return n
}

func TestFaultsOfStatements(t *testing.T) {
	const insert = "INSERT INTO d.t WITH LABEL l VALUES (1,'a')"
	for name, want := range map[string]struct {
		fault doris.Fault
		words string
		rows  int64
		state string
	}{
		"cut answer": {doris.Fault{CutAnswer: true}, "", 1, "VISIBLE"},
		"cut before": {doris.Fault{CutBody: 1}, "", 0, "UNKNOWN"},
		"fails":      {doris.Fault{Fail: doris.TooManyVersions}, "E-235", 0, "UNKNOWN"},
		"lingers":    {doris.Fault{Linger: make(chan bool)}, "", 0, "PREPARE"},
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, doris.Statement, want.fault)
			db := open(t, c, doris.Options{}, "d")
			_, err := db.ExecContext(t.Context(), insert)
			require.Error(t, err)
			assert.ErrorContains(t, err, want.words)
			assert.Equal(t, want.rows, c.Rows("d.t"))
			assert.Equal(t, want.state, c.State("d", "l"))
		})
	}
}

// A cluster that is closed lets go of everything, whatever is held.
func TestCloseLetsGo(t *testing.T) {
	c := scripted(t, doris.Load, doris.Fault{Hold: make(chan struct{})})
	done := make(chan error)
	go func() {
		_, err := put(t, c, "d/t", "1\ta\n", "label:l")
		done <- err
	}()
	assert.Eventually(t, func() bool { return asked(c, doris.Load) == 1 }, timeLimit, tick)
	c.Close()
	<-done
}
