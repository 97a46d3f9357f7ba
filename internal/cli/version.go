package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// release is set by the linker: -ldflags "-X …/internal/cli.release=v1.2.3". `go install …@v1.2.3` records the same
// version in the binary's module.
var release string

// versionInfo identifies a build of terapush.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Tags     string `json:"tags"` // of the build, such as "godror"
	// Drivers are the versions of the public database drivers that are linked in.
	Drivers map[string]string `json:"drivers"`
}

// buildVersion reads what the linker recorded. The binary of a test has settings and no modules.
func buildVersion() versionInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) versionInfo {
	v := versionInfo{
		Version: cmp.Or(release, strings.TrimPrefix(info.Main.Version, "(devel)"), "development"),
		Go:      runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Drivers: map[string]string{},
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "-tags":
			v.Tags = s.Value
		}
	}
	// Build tags decide which of these modules a binary holds.
	drivers := map[string]string{
		"github.com/jackc/pgx/v5": "pgx", "github.com/go-sql-driver/mysql": "mysql", "github.com/sijms/go-ora/v2": "go-ora",
		"github.com/godror/godror": "godror",
	}
	for _, m := range info.Deps {
		if name := drivers[m.Path]; name != "" {
			v.Drivers[name] = m.Version
		}
	}
	return v
}

// String returns the version and, below it, what is linked in.
func (v versionInfo) String() string {
	text := fmt.Sprintf("terapush %s %s %s %s\n", v.Version, v.Commit, v.Go, v.Platform)
	var in []string
	for _, name := range slices.Sorted(maps.Keys(v.Drivers)) {
		in = append(in, name+" "+v.Drivers[name])
	}
	if len(in) > 0 {
		text += "drivers  " + strings.Join(in, " · ") + "\n"
	}
	if v.Tags != "" {
		text += "tags     " + v.Tags + "\n"
	}
	return text
}

func (a *app) version() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and the database drivers",
		Args:  exactly(0, "version takes no arguments"),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if asJSON {
				return json.NewEncoder(a.Stdout).Encode(v)
			}
			_, err := fmt.Fprint(a.Stdout, v)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
