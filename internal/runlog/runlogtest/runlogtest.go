// Package runlogtest has common files for tests.
package runlogtest

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terapush/terapush/pkg/loader"
)

// Files are runlog.Files in memory.
type Files struct {
	mu  sync.Mutex
	All map[string]string
	// Dead makes Create fail for good, as of a process that was killed. It may be set at any time.
	Dead atomic.Bool
	// IgnoresIfNoneMatch makes Create replace files.
	IgnoresIfNoneMatch bool
	// Lost makes the next Create lose its answer.
	Lost bool
}

// New returns no files.
func New() *Files { return &Files{All: map[string]string{}} }

var (
	errLost = errors.New("the answer is lost")
	errDead = errors.New("the process is dead")
)

// Create implements runlog.Files.
func (m *Files) Create(_ context.Context, name string, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Dead.Load() {
		return errDead
	}
	if _, there := m.All[name]; there && !m.IgnoresIfNoneMatch {
		return fs.ErrExist
	}
	m.All[name] = string(content)
	if m.Lost {
		m.Lost = false
		return errLost
	}
	return nil
}

// Read implements runlog.Files.
func (m *Files) Read(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text, there := m.All[name]; there {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

// Names implements runlog.Files.
func (m *Files) Names(_ context.Context, folder, after string, each func(name string) error) error {
	m.mu.Lock()
	names := slices.Sorted(maps.Keys(m.All))
	m.mu.Unlock()
	for _, name := range names {
		if strings.HasPrefix(name, folder) && name > after {
			if err := each(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Remove implements runlog.Files.
func (m *Files) Remove(_ context.Context, folder string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.All, func(name, _ string) bool { return strings.HasPrefix(name, folder) })
	return nil
}

// Classify says that a lost answer can be asked for again.
func (m *Files) Classify(err error) loader.Verdict {
	if errors.Is(err, errLost) {
		return loader.Again(loader.ClassConnection)
	}
	return loader.Verdict{}
}

// Close does nothing.
func (m *Files) Close() error { return nil }
