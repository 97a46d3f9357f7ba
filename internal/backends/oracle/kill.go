package oracle

import (
	"context"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// EndOthers implements sqlload.Claims. It does not kill sessions, which would need the privilege ALTER SYSTEM.
func (l catalog) EndOthers(context.Context, *sqlload.State, loader.Ref) error { return nil }

// endHolders says where the sessions are named that hold up a fence: to name or end them takes an administrator's
// privileges.
func endHolders() (string, error) {
	return "V$LOCKED_OBJECT names their sessions to an administrator; SQLNET.EXPIRE_TIME in the server's sqlnet.ora makes it " +
		"notice that a client is gone, and MAX_IDLE_BLOCKER_TIME makes it end idle sessions that block others", nil
}
