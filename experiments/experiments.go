// Package experiments holds the plans that come with terapush: the measurements that others published and that it grew
// from and those that its users ask for, one YAML file each. docs/SWEEPS.md describes the format, internal/sweep reads it.
package experiments

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml datasets/*.yaml
var files embed.FS

// Files are the plan files, at the top of the tree, and their datasets in a folder of that name.
func Files() fs.FS { return files }
