package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
)

func TestNoVerbosityReachesWhereClientsLogBodies(t *testing.T) {
	t.Parallel()
	options := logDefaults()
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	options.BindFlags(flags)
	if err := flags.Parse([]string{"--zap-log-level=10"}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	options.DestWriter = &log
	logger := newLogger(&options)
	logger.V(maxVerbosity).Info("shown")
	logger.V(maxVerbosity + 1).Info("headers")
	logger.V(8).Info("Request Body", "body", "canary")
	if said := log.String(); !strings.Contains(said, "shown") || strings.Count(said, "\n") != 1 {
		t.Errorf("logged %q, want V(%d) alone", said, maxVerbosity)
	}
}

func TestOrdinaryErrorIsLoggedWithoutStackTrace(t *testing.T) {
	t.Parallel()
	options := logDefaults()
	var log bytes.Buffer
	options.DestWriter = &log
	newLogger(&options).Error(errors.New("refused"), "Reconciler error")
	if said := log.String(); !strings.HasPrefix(said, "{") || strings.Contains(said, "stacktrace") {
		t.Errorf("logged %q, want JSON without a stack trace", said)
	}
}
