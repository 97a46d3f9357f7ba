package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// release is set by the linker: -ldflags "-X …/internal/cli.release=v1.2.3".
var release = "development"

// versionInfo identifies a build of terapush.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Tags are the build tags, as "godror".
	Tags string `json:"tags"`
	// Drivers are the public database drivers that were linked in, with their versions.
	Drivers map[string]string `json:"drivers"`
}

func buildVersion() versionInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(info)
}

// versionOf reads what the linker noted. The binary of a test has settings and no modules.
func versionOf(info *debug.BuildInfo) versionInfo {
	v := versionInfo{
		Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Drivers: map[string]string{},
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "-tags":
			v.Tags = s.Value
		}
	}
	// Which of these modules a build holds is decided by build tags, and only the linker knows.
	drivers := []string{
		"github.com/jackc/pgx/v5", "github.com/go-sql-driver/mysql", "github.com/sijms/go-ora/v2", "github.com/godror/godror",
	}
	major := regexp.MustCompile(`/v\d+$`) // which the version says as well
	for _, m := range info.Deps {
		if slices.Contains(drivers, m.Path) {
			v.Drivers[path.Base(major.ReplaceAllString(m.Path, ""))] = m.Version
		}
	}
	return v
}

// String is the version for people: what it is, and below that what is in it.
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
		Short: "Tell which terapush this is, and which database drivers it holds",
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
