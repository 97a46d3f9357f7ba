// Package experiments holds the plans that come with terapush: the measurements that others published and that it grew
// from, one YAML file each. docs/SWEEPS.md describes the format, internal/sweep reads it.
package experiments

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Files are the plan files, at the top of the tree.
func Files() fs.FS { return files }
