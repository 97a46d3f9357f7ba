package cli

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which driver of a database a binary has is the linker's to say: no part of terapush knows both builds.
func TestDrivers(t *testing.T) {
	info := &debug.BuildInfo{
		Settings: []debug.BuildSetting{{Key: "-tags", Value: "godror"}, {Key: "CGO_ENABLED", Value: "1"}, {Key: "vcs.revision", Value: "abc"}},
		Deps: []*debug.Module{
			{Path: "github.com/jackc/pgx/v5", Version: "v5.12.0"},
			{Path: "github.com/jackc/puddle/v2", Version: "v2.2.2"},
			{Path: "github.com/godror/godror", Version: "v0.51.4"},
		},
	}
	v := versionOf(info)
	require.Equal(t, map[string]string{"pgx": "v5.12.0", "godror": "v0.51.4"}, v.Drivers)
	platform := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	require.Equal(t, "terapush development abc "+platform+"\ndrivers  godror v0.51.4 · pgx v5.12.0\ntags     godror\n", v.String())

	info.Main.Version = "(devel)" // built from a folder without a repository
	info.Settings, info.Deps = nil, []*debug.Module{{Path: "github.com/sijms/go-ora/v2", Version: "v2.9.0"}}
	require.Equal(t, "terapush development  "+platform+"\ndrivers  go-ora v2.9.0\n", versionOf(info).String())
	info.Main.Version = "v1.2.3" // go install …@v1.2.3
	require.Equal(t, "v1.2.3", versionOf(info).Version)
}
