package record

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"avalonhosting.example/bucketoperator/localcluster"
)

// excerpt is a block of Go in a page, whose first line names the file that it is from.
var excerpt = regexp.MustCompile("(?s)```go\n// (\\S+)\n(.*?)```")

func TestTheTutorialShowsTheFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := read("docs/adding-a-kind.md")
	excerpts := excerpt.FindAllStringSubmatch(page, -1)
	if blocks := strings.Count(page, "```go"); blocks != len(excerpts) || blocks == 0 {
		t.Errorf("%d of %d blocks of Go name their file", len(excerpts), blocks)
	}
	for _, e := range excerpts {
		if !strings.Contains(read(e[1]), e[2]) {
			t.Errorf("%s does not hold what docs/adding-a-kind.md shows of it:\n%s", e[1], e[2])
		}
	}
}
