package push_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// A table that holds rows is refused, unless they are to go: then the run's are the only ones.
func TestRowsOfAnotherRunAreRemoved(t *testing.T) {
	for _, create := range []string{"recreate", "truncate"} {
		p := newPlace(t)
		p.succeeds(small + " --rows 300")
		p.fails(small, report.PreflightFailed, "holds rows")
		p.exact(0, 300)
		p.succeeds(small + " --create " + create)
		p.exact(0, 195)
		p.succeeds(small + " --first-key 50 --create " + create)
		p.exact(50, 195)
	}
}

// What somebody else has made goes only by its name. A table made anew is terapush's; one that was emptied is not.
func TestForeignRowsAreKept(t *testing.T) {
	for create, mine := range map[string]bool{"recreate": true, "truncate": false} {
		p := newPlace(t)
		p.succeeds(small)
		p.memory.Foreign = true
		p.fails(small+" --rows 100 --create "+create, report.PreflightFailed, "was not made by terapush")
		p.fails(small+" --rows 100 --yes-drop other --create "+create, report.PreflightFailed, "was not made by terapush")
		p.exact(0, 195)
		p.succeeds(small + " --rows 100 --yes-drop memory --create " + create)
		p.exact(0, 100)
		if mine {
			p.succeeds(small + " --rows 50 --create " + create)
			p.exact(0, 50)
		} else {
			p.fails(small+" --rows 50 --create "+create, report.PreflightFailed, "was not made by terapush")
			p.exact(0, 100)
		}
	}
}

// A resume neither drops nor empties again: what the first process has loaded is not sent twice, and the table is the same.
func TestResumeKeepsWhatItsRunHasMade(t *testing.T) {
	for _, create := range []string{"recreate", "truncate"} {
		p := newPlace(t)
		p.memory.Script = func(number int64, attempt int) loadertest.Fault {
			if number == 10 && attempt == 1 {
				return loadertest.Fault{Before: syscall.EINVAL}
			}
			return loadertest.Fault{}
		}
		_, err := p.push(small + " --workers 1 --retries 0 --create " + create)
		require.Error(t, err)
		before := len(p.memory.Applied())
		require.Positive(t, before)
		require.Equal(t, "table-1/1", p.record().Identity)

		p.succeeds("--resume " + p.run())
		p.exact(0, 195)
		require.Len(t, p.memory.Applied(), 20)
		require.Equal(t, 1, p.memory.Attempts(0), "not sent again")
	}
}

// With nothing but the load asked for, no statement removes rows.
func TestSilentPreparationRemovesNothing(t *testing.T) {
	m := &loadertest.Memory{Identity: "i"}
	l, err := m.Driver().Open(t.Context(), loader.Target{Method: "keep"}, loader.Deps{})
	require.NoError(t, err)
	made, err := l.Prepare(t.Context(), loader.Preparation{Create: loader.CreateTruncate, Silent: true})
	require.NoError(t, err)
	require.Equal(t, "i", made.Identity)
}
