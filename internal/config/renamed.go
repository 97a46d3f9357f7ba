package config

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
)

// renamed are the flags that have another name than before, by the old one. Until the next release the old name is
// taken wherever a user writes it: on the command line, as a variable, as a key of a file. Records have new names only:
// no release has written one with the old names.
var renamed = map[string]string{
	"be":       "backend-hosts",
	"near":     "tolerance",
	"via":      "staging",
	"yes-drop": "allow-drop",
}

// Current returns the name of a flag that may be given by its old one.
func Current(name string) string {
	if now, ok := renamed[name]; ok {
		return now
	}
	return name
}

// oldNames lists the old names of a flag.
func oldNames(flag string) (old []string) {
	for was, now := range renamed {
		if now == flag {
			old = append(old, was)
		}
	}
	return old
}

// usedKey is the annotation that holds the old name by which a flag was given.
const usedKey = "old name"

// AcceptOldNames lets f take flags by their old names. OldNames tells which were.
func AcceptOldNames(f *pflag.FlagSet) {
	f.SetNormalizeFunc(func(f *pflag.FlagSet, name string) pflag.NormalizedName {
		now := Current(name)
		if now != name {
			if flag := f.Lookup(now); flag != nil {
				annotate(flag, usedKey, "--"+name)
			}
		}
		return pflag.NormalizedName(now)
	})
}

// OldNames returns a sentence for each flag that was given by an old name.
func OldNames(f *pflag.FlagSet) (all []string) {
	f.VisitAll(func(flag *pflag.Flag) {
		for _, was := range flag.Annotations[usedKey] {
			all = append(all, Renamed(was, "--"+flag.Name))
		}
	})
	slices.Sort(all)
	return all
}

// Renamed is the sentence about an old name.
func Renamed(was, now string) string { return fmt.Sprintf("%s is now called %s", was, now) }
