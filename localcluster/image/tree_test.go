package image

import (
	"archive/tar"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var anyEntrypoint = Config{Entrypoint: []string{"/program"}}

func TestContentsAndModesAreAsAdded(t *testing.T) {
	t.Parallel()
	tree := newTree(t,
		func(tree *Tree) error { return tree.AddFile("/program", 0o755, []byte("code")) },
		func(tree *Tree) error { return tree.AddFile("/bin/su", 0o755|fs.ModeSetuid, []byte("no longer")) },
		func(tree *Tree) error { return tree.AddFolder("/tmp", 0o777|fs.ModeSticky) },
		file("/etc/passwd", "nobody"),
		link("/etc/mtab", "/proc/mounts"),
		func(tree *Tree) error { return tree.AddFolder("/etc", 0o700) }, // made before, for what is in it
		file("/etc/passwd", "nobody"),                                   // once more
	)
	want := map[string]listed{
		"program":    {Type: tar.TypeReg, Mode: 0o755, Content: "code"},
		"bin/":       {Type: tar.TypeDir, Mode: 0o755},
		"bin/su":     {Type: tar.TypeReg, Mode: 0o755, Content: "no longer"},
		"tmp/":       {Type: tar.TypeDir, Mode: 0o1777},
		"etc/":       {Type: tar.TypeDir, Mode: 0o700},
		"etc/passwd": {Type: tar.TypeReg, Mode: 0o644, Content: "nobody"},
		"etc/mtab":   {Type: tar.TypeSymlink, Mode: 0o777, Link: "/proc/mounts"},
	}
	if diff := cmp.Diff(want, list(t, mustBuild(t, tree, anyEntrypoint))); diff != "" {
		t.Errorf("the image's files (-want +got):\n%s", diff)
	}
}

func TestAPathThroughALinkMeansWhatTheLinkLeadsTo(t *testing.T) {
	t.Parallel()
	for name, add := range map[string][]func(*Tree) error{
		"relative": {link("/lib", "usr/lib"), file("/lib/libc.so.6", "c")},
		"absolute": {link("/lib", "/usr/lib"), file("/lib/libc.so.6", "c")},
		"upwards":  {link("/opt/x/lib", "../../usr/lib"), file("/opt/x/lib/libc.so.6", "c")},
		"twice":    {link("/lib64", "lib"), link("/lib", "usr/lib"), file("/lib64/libc.so.6", "c")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entries := list(t, mustBuild(t, newTree(t, add...), anyEntrypoint))
			if _, there := entries["usr/lib/libc.so.6"]; !there {
				t.Errorf("usr/lib/libc.so.6 is not in the image, which holds %v", entries)
			}
		})
	}
}

func TestWhatCannotBeAddedIsAnError(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		add  []func(*Tree) error
		last func(*Tree) error
		want string
	}{
		"a relative path":          {last: file("etc/passwd", ""), want: "not absolute"},
		"other content":            {add: []func(*Tree) error{file("/a", "1")}, last: file("/a", "2"), want: "a file that differs"},
		"a link with other target": {add: []func(*Tree) error{link("/a", "b")}, last: link("/a", "c"), want: "a link to b that differs"},
		"a link over a folder":     {add: []func(*Tree) error{file("/lib/x", "")}, last: link("/lib", "usr/lib"), want: "a folder at that path"},
		"a file as folder":         {add: []func(*Tree) error{file("/a", "")}, last: file("/a/b", ""), want: "/a is a file"},
		"a link to itself":         {add: []func(*Tree) error{link("/a", "a")}, last: file("/a/b", ""), want: "more than 40 links"},
		"a link to nothing":        {last: link("/a", ""), want: "without target"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.last(newTree(t, test.add...))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that says %q", err, test.want)
			}
		})
	}
}
