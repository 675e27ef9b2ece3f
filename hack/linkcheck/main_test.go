package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		files map[string]string
		want  []string
	}{
		"a link to a file, a folder or a heading that exists is fine": {
			files: map[string]string{
				"README.md":     "# Top\n[kind](docs/kind.md) [docs](docs) [top](#top) [status](docs/kind.md#the-status)",
				"docs/kind.md":  "## The `status`\n[up](../README.md#top)",
				"docs/notes.md": "[ref]\n\n[ref]: ../README.md\n",
			},
		},
		"a missing file is named with its line": {
			files: map[string]string{"docs/a.md": "first\n[b](b.md)"},
			want:  []string{"docs/a.md:2: b.md: no such file"},
		},
		"a missing heading is named": {
			files: map[string]string{"a.md": "# One\n[two](#two)"},
			want:  []string{"a.md:2: #two: no such heading"},
		},
		"a reference definition is a link": {
			files: map[string]string{"a.md": "[ref]: gone.md"},
			want:  []string{"a.md:1: gone.md: no such file"},
		},
		"a link out of the project works on one machine only": {
			files: map[string]string{"a.md": "[x](../x.md) [y](/y.md)"},
			want: []string{
				"a.md:1: ../x.md: leads out of the project",
				"a.md:1: /y.md: leads out of the project",
			},
		},
		"other hosts are not asked": {
			files: map[string]string{"a.md": "[x](https://example.com/gone) [m](mailto:a@example.com)"},
		},
		"what is in code is no link": {
			files: map[string]string{"a.md": "`[x](gone.md)`\n```yaml\n[x](gone.md)\n# comment\n```\n"},
		},
		"a comment in a code block is no heading": {
			files: map[string]string{"a.md": "```sh\n# build\n```\n[b](#build)"},
			want:  []string{"a.md:4: #build: no such heading"},
		},
		"headings of one name are numbered": {
			files: map[string]string{"a.md": "# Run\n# Run\n[second](#run-1) [third](#run-2)"},
			want:  []string{"a.md:3: #run-2: no such heading"},
		},
		"an image is checked like a link": {
			files: map[string]string{"a.md": `![graph](graph.png "a title")`},
			want:  []string{"a.md:1: graph.png: no such file"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{}
			for file, text := range tc.files {
				tree[file] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := check(tree)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("dead links (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for heading, want := range map[string]string{
		"What it does, and why":      "what-it-does-and-why",
		"`spec.sizeGB`":              "specsizegb",
		"[StorageBucket](bucket.md)": "storagebucket",
		"A_b - c":                    "a_b---c",
	} {
		if got := slug(heading); got != want {
			t.Errorf("slug(%q) = %q, want %q", heading, got, want)
		}
	}
}
