// Package config reads flags, the environment and a file, in this order of precedence, into one struct, and plans a run
// in numbers. It opens no connection.
package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Push is the configuration of a push, in groups: who needs one of them takes that one. Zero values mean the defaults
// in --help.
type Push struct {
	Database
	Data
	Destination
	Batches
	Pace
	Patience
	Proof
	Run
	Output

	Files *Files // of a load; nil of a push
}

// Validate returns everything that is wrong at once.
func (p *Push) Validate() error {
	var all problems
	if p.Files != nil {
		p.Files.validate(&all, p)
	} else {
		p.Data.validate(&all)
		p.Proof.validate(&all)
		all.refuse(p.RunID == "" && !p.Shard.Whole(), "--shard %s: its processes find each other by --run-id NAME", &p.Shard)
	}
	p.Database.validate(&all)
	p.Destination.validate(&all)
	p.Batches.validate(&all)
	p.Pace.validate(&all)
	p.Patience.validate(&all)
	p.Run.validate(&all)
	p.Output.validate(&all)

	all.refuse(p.Rows < 0 || p.BatchRows < 0, "a number of rows cannot be negative")
	all.refuse(p.Duration < 0 || p.WarmUp < 0 || p.BatchTimeout < 0 || p.RetryFor < 0 || p.MetricsLinger < 0,
		"a duration cannot be negative")
	all.refuse(p.Append && (p.Create == string(loader.CreateRecreate) || p.Create == string(loader.CreateTruncate)),
		"--append and --create %s contradict each other", p.Create)
	all.refuse(p.RowsOfLike() && p.RunID != "",
		"--like with --run-id: the table may be another one for the next process: write it with terapush inspect, "+
			"and give every process the same --dataset file.yaml")
	all.refuse(p.RunID != "" && p.Duration > 0,
		"--run-id: a run by --duration has no number of rows; give --rows or --bytes")
	return all.join()
}

// FillsLike reports whether the table of --like is filled itself, and not one that is like it.
func (p *Push) FillsLike() bool {
	table := p.Table
	if table == "" && !p.RowsOfLike() && p.Own != nil {
		table = p.Own.Name
	}
	own := []string{"", p.Like, p.LikeTable.Schema + "." + p.LikeTable.Name}
	return p.Like != "" && slices.Contains(own, table)
}

// LastRun stands for the newest run of a state folder, wherever a run is named.
const LastRun = "last"

// IsRunName reports whether a user may give a run this name. Connections and folders are named after it; no id that
// terapush makes is one, nor the folder of a shard.
func IsRunName(name string) bool {
	return runName.MatchString(name) && !strings.Contains(name, "-of-") && name != LastRun
}

var runName = regexp.MustCompile(`^[a-z][0-9a-z-]{0,39}` + childPart + `$`)
