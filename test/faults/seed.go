package faults

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
)

// seedWithoutCommit is the seed where there is no git, or no commit.
const seedWithoutCommit = 1

// seedOfCommit is a seed that follows from the commit that is checked out, so
// that a run can be repeated on any day, and on any machine. It says where the
// seed is from.
func seedOfCommit(ctx context.Context) (seed uint, from string) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return seedWithoutCommit, "no commit is to be found here: the seed is a fixed one"
	}
	return seedOf(strings.TrimSpace(string(out)))
}

// seedOf is never 0: that stands for a seed that nobody has asked for.
func seedOf(commit string) (seed uint, from string) {
	const digits = 7
	if len(commit) < digits {
		return seedWithoutCommit, "git names no commit: the seed is a fixed one"
	}
	number, err := strconv.ParseUint(commit[:digits], 16, 32)
	if err != nil {
		return seedWithoutCommit, "git names no commit: the seed is a fixed one"
	}
	return uint(number) + 1, "the seed follows from commit " + commit[:digits]
}
