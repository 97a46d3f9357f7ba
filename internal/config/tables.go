package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/dataset"
)

// Times is a factor above 0; 0: not given.
type Times float64

// Set implements pflag.Value.
func (t *Times) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) {
		return errors.New("write a number above 0, as 0.1 or 20")
	}
	*t = Times(n)
	return nil
}

// String implements pflag.Value.
func (t *Times) String() string {
	if *t == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*t), 'g', -1, 64)
}

// Type implements pflag.Value.
func (*Times) Type() string { return "factor" }

// CheckTables returns what a push of several tables cannot have.
func (p *Push) CheckTables() error {
	var all problems
	for _, one := range []struct {
		flag  string
		given bool
	}{
		{"table", p.Table != ""}, {"bytes", p.Bytes > 0}, {"duration", p.Duration > 0}, {"first-key", p.FirstKey.Given}, {"append", p.Append},
	} {
		all.refuse(one.given, "--%s is not for a file of several tables: it says their names and rows, which --rows and --times scale; "+
			"one of them alone is --dataset FILE#TABLE", one.flag)
	}
	all.refuse(p.Rows > 0 && p.Times > 0, "--rows and --times exclude each other")
	return all.join()
}

// OfTable returns the configuration of the run of one table.
func (p *Push) OfTable(t dataset.SpecTable) Push {
	c := *p
	c.Tables, c.Own, c.Table = nil, t.Spec, t.Name
	c.Rows, c.Times = 0, 0
	return c
}

// childPart is what follows the id or name of a run of several tables in that of the run of one of them.
const childPart = `(\.[1-9][0-9]{0,4})?`

// ChildOf names the run of the table with an index, from 0, of a run of several tables.
func ChildOf(run string, table int) string { return fmt.Sprintf("%s.%d", run, table+1) }

// ParentOf returns the run of several tables that a run is a part of, and the index of its table, from 0.
func ParentOf(run string) (parent string, table int, is bool) {
	parent, number, is := strings.Cut(run, ".")
	table, err := strconv.Atoi(number)
	return parent, table - 1, is && err == nil
}
