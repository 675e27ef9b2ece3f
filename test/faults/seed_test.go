package faults

import "testing"

func TestTheSeedFollowsFromTheCommit(t *testing.T) {
	t.Parallel()
	for commit, want := range map[string]uint{
		"0000000000000000000000000000000000000000": 1,
		"fefbfdd7e4c8a1b2c3d4e5f60718293a4b5c6d7e": 0xfefbfdd + 1,
		"": seedWithoutCommit, "HEAD": seedWithoutCommit, "not-a-commit": seedWithoutCommit,
	} {
		if seed, _ := seedOf(commit); seed != want {
			t.Errorf("commit %q: seed %d, want %d", commit, seed, want)
		}
	}
}
