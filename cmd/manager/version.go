package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is what `make build` sets, to what git describe says.
var version string

// versionLine is what --version prints.
func versionLine() string {
	built := version
	if info, ok := debug.ReadBuildInfo(); ok {
		built = cmp.Or(built, info.Main.Version)
	}
	return fmt.Sprintf("bucketoperator %s %s %s/%s", cmp.Or(built, "(devel)"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
