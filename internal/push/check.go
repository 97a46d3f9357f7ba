package push

import (
	"context"
	"errors"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
)

// Check refuses what Explain would: what no server could make good. It tells all that it can find at once, prints
// nothing, and connects to nothing.
func Check(c *config.Push, drivers *loader.Registry) error {
	_, err := sketch(c, drivers)
	return err
}

// sketch plans a push of a copy of the configuration, as far as that is possible without a server.
func sketch(c *config.Push, drivers *loader.Registry) (*push, error) {
	p := &push{Job: Job{Config: *c, Drivers: drivers}, link: localLink(context.Background())}
	own := &p.Config
	_, verifying := verify.ParseMode(own.Verify)
	if err := everything(p.configure(), verifying); err != nil {
		return nil, err
	}
	caps, err := p.driver.Check(p.target)
	if err != nil {
		return nil, err
	}
	lowered := p.lower(caps)
	if p.contract, p.warnings, err = loader.Negotiate(caps, p.want()); err != nil {
		return nil, err
	}
	if lowered != "" {
		p.warnings = append(p.warnings, lowered)
	}
	var more []string
	p.plan, p.encoder, more, err = p.planFrom(own.FirstKey.Key)
	p.warnings = append(p.warnings, more...)
	return p, err
}

// everything joins problems, each of them once: two steps may come upon the same.
func everything(problems ...error) error {
	var all []error
	told := map[string]bool{}
	var add func(err error)
	add = func(err error) {
		if many, is := err.(interface{ Unwrap() []error }); is { //nolint:errorlint // the joined errors themselves are wanted
			for _, one := range many.Unwrap() {
				add(one)
			}
			return
		}
		if err != nil && !told[err.Error()] {
			told[err.Error()] = true
			all = append(all, err)
		}
	}
	for _, err := range problems {
		add(err)
	}
	return errors.Join(all...)
}
