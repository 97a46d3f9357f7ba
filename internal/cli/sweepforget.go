package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/engine/ledger"
	"github.com/terapush/terapush/internal/push"
)

// forget removes what runs of cells have left besides their rows: claims, journals. What cannot be removed now is tried
// again behind the next push.
func (c *cellPusher) forget(ctx context.Context) {
	c.kept = nil
	for _, id := range c.runs() {
		if err := c.forgetRun(ctx, id); err != nil {
			c.kept = append(c.kept, fmt.Errorf("run %s: %w", id, err))
		}
	}
}

// runs are the ids in the sweep's own state folder.
func (c *cellPusher) runs() []string {
	entries, err := os.ReadDir(c.state)
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			_ = os.RemoveAll(filepath.Join(c.state, e.Name())) // a run that had not begun when its process was killed
			continue
		}
		ids = append(ids, e.Name())
	}
	return ids
}

// forgetRun forgets a run by its own record: a process that was killed may have been told otherwise.
func (c *cellPusher) forgetRun(ctx context.Context, id string) error {
	folder := filepath.Join(c.state, id)
	if _, err := os.Stat(filepath.Join(folder, "run.json")); errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(folder) // it was being removed, as the last step, when its process was killed
	}
	r, err := ledger.Read(c.state, id)
	if err != nil {
		return err
	}
	values := map[string][]string{"target": {c.withPassword(r.Target)}}
	for name, given := range r.Flags {
		values[name] = given
	}
	if c.process.Connect.PasswordFile != "" {
		values["password-file"] = []string{c.process.Connect.PasswordFile}
	}
	p, _, err := config.FromValues(values, c.drivers, c.LookupEnv, c.file)
	if err != nil {
		return err
	}
	p.State, p.Resume = c.state, id
	return push.Forget(ctx, push.Job{Config: p, Drivers: c.drivers, Log: c.said.logger()})
}

// withPassword is the target as the plan has it, with what a record leaves out.
func (c *cellPusher) withPassword(shown string) string {
	for _, one := range c.cells {
		if text, err := shownTarget(one.config.Target); err == nil && text == shown {
			return one.config.Target
		}
	}
	return shown
}

// leave removes the sweep's state folder, and says what it could not forget.
func (c *cellPusher) leave() {
	if len(c.kept) > 0 {
		c.log().Warn(fmt.Sprintf("claims of the sweep's runs may still be in the claim table; the same command tries again to remove them: %v", errors.Join(c.kept...)))
	}
	_ = os.Remove(c.state) // stays as long as there is something in it
}

// saidOnce is a log for many pushes that say the same.
type saidOnce struct {
	out  *slog.Logger
	mu   sync.Mutex
	said map[string]bool
}

func (s *saidOnce) logger() *slog.Logger { return slog.New(onceHandler{s.out.Handler(), s}) }

type onceHandler struct {
	slog.Handler
	once *saidOnce
}

func (h onceHandler) Handle(ctx context.Context, r slog.Record) error {
	h.once.mu.Lock()
	again := h.once.said[r.Message]
	if h.once.said == nil {
		h.once.said = map[string]bool{}
	}
	h.once.said[r.Message] = true
	h.once.mu.Unlock()
	if again {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
