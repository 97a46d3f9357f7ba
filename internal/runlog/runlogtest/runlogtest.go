// Package runlogtest has a bucket for tests.
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

// Files are those of a bucket, in memory: push.StateStore.
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

// Create implements push.StateStore.
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

// Read implements push.StateStore.
func (m *Files) Read(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text, there := m.All[name]; there {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

// Write implements push.StateStore.
func (m *Files) Write(_ context.Context, name string, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.All[name] = string(content)
	return nil
}

// Names implements push.StateStore.
func (m *Files) Names(_ context.Context, folder string, each func(name string) error) error {
	m.mu.Lock()
	names := slices.Sorted(maps.Keys(m.All))
	m.mu.Unlock()
	for _, name := range names {
		if !strings.HasPrefix(name, folder) {
			continue
		}
		if err := each(name); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements push.StateStore.
func (m *Files) Remove(_ context.Context, names ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.All, name)
	}
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
