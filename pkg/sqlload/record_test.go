package sqlload_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// A dry run that leaves a table out says less than the run does, and nobody sees it.
func TestRecorderNeedsMissing(t *testing.T) {
	l, p := newMemory(false).table(), preparation(ifMissing)
	r := sqlload.NewRecorder(l)
	r.Prepare(p, l.Prepare)
	r.Count(p)
	assert.Equal(t, []loader.Statement{{When: "refused: the back-end's Recorder has no Missing"}}, r.Statements())
}
