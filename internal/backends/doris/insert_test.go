package doris

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// An INSERT that was acknowledged is in. What becomes of the question that follows it is no reason to send it again, least
// of all where no label would recognise it.
func TestInsertIsNotSentAgainForAQuestion(t *testing.T) {
	d := documents(t)
	for name, o := range map[string]fake.Options{
		"lost": {Script: func(r fake.Request) fake.Fault {
			return fake.Fault{CutAnswer: strings.HasPrefix(r.SQL, "SHOW LAST INSERT")}
		}},
		"refused": {Script: func(r fake.Request) fake.Fault {
			if strings.HasPrefix(r.SQL, "SHOW LAST INSERT") {
				return fake.Fault{Fail: "not here"}
			}
			return fake.Fault{}
		}},
		"a follower": {Follower: true},
	} {
		for _, mode := range []string{"off", "sync"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				s := startStandIn(t, o)
				c := contractOf(methodInsert, batch.Values, 10)
				if mode != "off" {
					c.Dedup, c.Delivery = loader.DedupNone, loader.AtLeastOnce
				}
				target := s.table(methodInsert, map[string]string{optGroupCommit: mode, optGroupInterval: "20"})
				db := s.open(t, target, d, c)
				ack, err := load(t.Context(), backendtest.Session(t, db, c), batchOf(t, d, batch.Values, batch.ID{Run: "r", Number: 0}, 0, 10))
				require.NoError(t, err)
				assert.EqualValues(t, 10, ack.Rows)
				assert.Equal(t, name == "a follower" && mode == "off", len(ack.Detail) == 0, "what is not known is said: %v", ack.Detail)
				assert.EqualValues(t, 10, s.Rows(target.Table))
			})
		}
	}
}
