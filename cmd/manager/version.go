package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is what a release build sets: -ldflags "-X main.version=v0.1.0".
var version string

// versionLine is what --version prints.
func versionLine() string {
	built := version
	if info, ok := debug.ReadBuildInfo(); ok {
		built = cmp.Or(built, info.Main.Version)
	}
	return fmt.Sprintf("bucketoperator %s %s %s/%s", cmp.Or(built, "(devel)"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
