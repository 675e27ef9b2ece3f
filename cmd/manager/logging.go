package main

import (
	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// maxVerbosity is the highest V level that is ever logged. client-go logs with
// the logger of the caller's context, and from V(8) on it logs the bodies of
// requests and answers, Secrets among them; V(6) and V(7) are its headers.
const maxVerbosity = 5

// logDefaults are those that suit a pod: JSON, and no stack trace with an
// ordinary error of a pass, which is an answer of a provider more often than
// a bug. The --zap-* flags change them.
func logDefaults() zap.Options {
	return zap.Options{StacktraceLevel: zapcore.PanicLevel}
}

// setLoggers sends what this program and the libraries log to one place.
// klog's own verbosity stays 0: it has no flag here.
func setLoggers(options *zap.Options) {
	logger := newLogger(options)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
}

func newLogger(options *zap.Options) logr.Logger {
	if options.Level != nil {
		options.Level = cappedLevel{options.Level}
	}
	return zap.New(zap.UseFlagOptions(options))
}

// cappedLevel is a level that lets nothing through beyond maxVerbosity,
// whatever it was set to.
type cappedLevel struct{ zapcore.LevelEnabler }

// Enabled tells whether a level is logged. zap's level -n is logr's V(n).
func (c cappedLevel) Enabled(level zapcore.Level) bool {
	return level >= -maxVerbosity && c.LevelEnabler.Enabled(level)
}
