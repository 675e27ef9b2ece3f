package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
)

// program is a Go program, and what its linker wrote into it.
type program struct {
	content []byte
	info    *debug.BuildInfo
}

func readProgram(file string) (program, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return program{}, fmt.Errorf("reading the program: %w", err)
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return program{}, fmt.Errorf("reading how %s was built: %w", file, err)
	}
	p := program{content: content, info: info}
	if p.setting("GOOS") != "linux" || p.setting("CGO_ENABLED") != "0" {
		return program{}, fmt.Errorf("%s is for %s, with CGO_ENABLED=%s: the image takes static programs for linux, as `make build` with GOOS=linux gives",
			file, p.setting("GOOS"), p.setting("CGO_ENABLED"))
	}
	return p, nil
}

// setting is one of the build's settings, as `go version -m` shows them.
func (p program) setting(key string) string {
	for _, s := range p.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
