package runlog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/run"
)

// Stage is how far a run is.
type Stage string

// The stages.
const (
	Loading  Stage = "loading"
	Loaded   Stage = "loaded" // every batch is in; not verified yet
	Verified Stage = "verified"
)

// Record is what another process needs to resume, verify or forget a run. It holds no secret.
type Record struct {
	Run     string    `json:"run"`
	Started time.Time `json:"started"`
	Stage   Stage     `json:"stage"`
	Target  string    `json:"target"`
	Via     string    `json:"via,omitempty"` // the object store of a staged method
	Table   string    `json:"table"`
	// Identity is the table's, as the back-end reports it. A table that was dropped or emptied since has another.
	Identity string   `json:"identity"`
	Plan     run.Plan `json:"plan"`
	// Flags are those of the start, so that a resume is "--resume RUN" and nothing else.
	Flags map[string][]string `json:"flags"`
	// Tables are those of the run of which this one is the first part; nil of all others.
	Tables *dataset.Tables `json:"tables,omitempty"`
}

// Folder returns the name of the run's folder. Each shard of a run has its own.
func (r Record) Folder() string { return FolderOf(r.Run, r.Plan.Shard) }

// FolderOf returns the name of the folder of a run's shard.
func FolderOf(run string, s config.Shard) string {
	if s.Whole() {
		return run
	}
	return fmt.Sprintf("%s-%d-of-%d", run, s.Index, s.Count)
}

// ErrNoRun reports that a state folder has no record of a run.
var ErrNoRun = errors.New("no run")

// Read reads a run's record without taking the run over.
func Read(stateDir, run string) (Record, error) {
	dir, err := folder(stateDir, run)
	if err != nil {
		return Record{}, err
	}
	r, err := recordIn(dir)
	if err != nil {
		return Record{}, err
	}
	if r == nil {
		return Record{}, fmt.Errorf("%w %q in %s: is --state-dir the one it was started with? terapush runs lists its runs", ErrNoRun, run, stateDir)
	}
	if r.Folder() != run {
		return *r, fmt.Errorf("%s has the record of run %q: was the folder copied or renamed? Give it that name", dir, r.Run)
	}
	return *r, nil
}

// recordIn returns the record in a run's folder, nil if there is none.
func recordIn(dir string) (*Record, error) {
	p := pieces{files: Folder(dir)}
	newest, err := p.newest()
	if err != nil {
		return nil, err
	}
	r, err := p.record(newest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return r, nil
}

// folder returns a run's folder. Other letters than an id's might lead out of the state folder.
func folder(stateDir, run string) (string, error) {
	if !isFolder(run) {
		return "", fmt.Errorf("%q is not the id of a run: ids are made of digits, lower-case letters and dashes", run)
	}
	return filepath.Join(stateDir, run), nil
}

// isFolder reports whether a run's folder may have the name. A dot is within the name of a part of a run of several tables.
func isFolder(name string) bool {
	return name != "" && strings.Trim(name, idLetters) == "" && name[0] != '.'
}

const idLetters = "0123456789abcdefghijklmnopqrstuvwxyz-."

// NewID makes a run id: the start in UTC, so that runs sort by time, and enough chance that no two machines choose the
// same. It needs no quoting anywhere.
func NewID(now time.Time) string {
	return now.UTC().Format("20060102-150405-") + strings.ToLower(rand.Text()[:6])
}

// IsID reports whether NewID could have made id, or that of the run it is a part of.
func IsID(id string) bool {
	if parent, _, is := config.ParentOf(id); is {
		id = parent
	}
	return madeID.MatchString(id)
}

var madeID = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[a-z2-7]{6}$`)

// Flag returns the value a flag was given at the start, or "".
func (r Record) Flag(name string) string {
	if values := r.Flags[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Usable creates the state folder and tries to write there: a run that could not be resumed must not touch a database.
func Usable(stateDir string) error {
	err := os.MkdirAll(stateDir, 0o700)
	if err == nil {
		var try string
		if try, err = os.MkdirTemp(stateDir, tempPrefix+"try-"); err == nil {
			const size = 64 << 10 // several times what a new run takes
			err = errors.Join(file.WriteSynced(filepath.Join(try, pieceName(1)), make([]byte, size)), os.RemoveAll(try))
		}
	}
	if err != nil {
		return fmt.Errorf("the state folder, without which a run cannot be resumed: %w; choose another --state-dir", err)
	}
	return nil
}
