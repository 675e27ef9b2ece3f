package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/egress/guard"
	"avalonhosting.example/bucketoperator/internal/operator"
)

// minResync keeps a slip of the pen from becoming a flood of calls.
const minResync = time.Second

// validate finds the first flag that cannot be right.
func (o *options) validate() error {
	return cmp.Or(o.validateNames(), o.validateNumbers(), o.validateEndpoint(), o.leader.validate(), o.metrics.validate())
}

func (o *options) validateNames() error {
	known := operator.Names(controllers.Definitions)
	for _, name := range o.controllers {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--controllers: there is no controller %q; known are %s", name, strings.Join(known, ", "))
		}
	}
	for _, name := range o.namespaces {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("--namespaces: %q is no name of a namespace: %s", name, problems[0])
		}
	}
	return nil
}

func (o *options) validateNumbers() error {
	switch {
	case o.maxConcurrent < 1:
		return errors.New("--max-concurrent-reconciles must be at least 1")
	case o.resyncInterval < minResync:
		return fmt.Errorf("--resync-interval must be at least %s", minResync)
	case o.shutdown <= 0:
		return errors.New("--graceful-shutdown-timeout must be above 0")
	}
	return nil
}

func (o *options) validateEndpoint() error {
	if o.defaultEndpoint == "" {
		return nil
	}
	if _, err := guard.Parse(o.defaultEndpoint); err != nil {
		return fmt.Errorf("--default-provider-endpoint %w", err)
	}
	return nil
}
