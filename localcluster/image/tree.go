package image

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through, as in Linux.
const maxLinks = 40

// Tree is the file system of an image. Paths in it are absolute. Folders above
// an entry are made as needed, with mode 0755. A path that leads through a
// symbolic link of the tree means what the link leads to: in a tree where /lib
// is a link to usr/lib, /lib/x is /usr/lib/x.
//
// Adding the same entry twice does nothing; adding another one at the same path
// is an error.
type Tree struct {
	entries map[string]entry // by clean path
}

// entry is a file, a folder or a symbolic link.
type entry struct {
	mode    fs.FileMode // type, permissions, and sticky
	content []byte      // of a file
	target  string      // of a symbolic link
}

func (e entry) equal(other entry) bool {
	return e.mode == other.mode && e.target == other.target && bytes.Equal(e.content, other.content)
}

// NewTree returns an empty tree.
func NewTree() *Tree {
	return &Tree{entries: map[string]entry{"/": {mode: fs.ModeDir | 0o755}}}
}

// AddFile adds a file. The tree keeps the content, which must not be changed
// afterwards. Of the mode, only permissions count: nothing in an image is setuid
// or setgid.
func (t *Tree) AddFile(name string, mode fs.FileMode, content []byte) error {
	return t.add(name, entry{mode: mode.Perm(), content: content})
}

// AddFolder adds a folder, or sets the mode of one that was made because there
// was an entry in it. Of the mode, permissions and fs.ModeSticky count.
func (t *Tree) AddFolder(name string, mode fs.FileMode) error {
	return t.add(name, entry{mode: fs.ModeDir | mode&(fs.ModePerm|fs.ModeSticky)})
}

// AddLink adds a symbolic link. A target that is not absolute is relative to the
// link's folder. It need not exist.
func (t *Tree) AddLink(name, target string) error {
	if target == "" {
		return fmt.Errorf("adding %s to the image: a link without target", name)
	}
	return t.add(name, entry{mode: fs.ModeSymlink | 0o777, target: target})
}

func (t *Tree) add(name string, e entry) error {
	if err := t.put(name, e); err != nil {
		return fmt.Errorf("adding %s to the image: %w", name, err)
	}
	return nil
}

func (t *Tree) put(name string, e entry) error {
	if !path.IsAbs(name) {
		return errors.New("the path is not absolute")
	}
	name = path.Clean(name)
	if name != "/" {
		folder, err := t.makeFolder(path.Dir(name))
		if err != nil {
			return err
		}
		name = path.Join(folder, path.Base(name))
	}
	old, taken := t.entries[name]
	switch {
	case !taken, old.equal(e), old.mode.IsDir() && e.mode.IsDir():
		t.entries[name] = e
		return nil
	case old.mode.Type() != e.mode.Type():
		return fmt.Errorf("there is %s at that path already", describe(old))
	default:
		return fmt.Errorf("there is %s that differs at that path already", describe(old))
	}
}

// makeFolder makes the folder and those above it, unless they exist, and returns
// its path free of links.
func (t *Tree) makeFolder(name string) (string, error) {
	resolved := "/"
	links := 0
	for todo := elements(name); len(todo) > 0; {
		next := path.Join(resolved, todo[0])
		todo = todo[1:]
		e, exists := t.entries[next]
		switch {
		case !exists:
			t.entries[next] = entry{mode: fs.ModeDir | 0o755}
			resolved = next
		case e.mode.IsDir():
			resolved = next
		case e.mode.Type() == fs.ModeSymlink:
			if links++; links > maxLinks {
				return "", fmt.Errorf("%s leads through more than %d links", name, maxLinks)
			}
			if path.IsAbs(e.target) {
				resolved = "/"
			}
			todo = append(elements(e.target), todo...)
		default:
			return "", fmt.Errorf("%s is %s", next, describe(e))
		}
	}
	return resolved, nil
}

// elements splits a path into its names, of which .. may be one.
func elements(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

func describe(e entry) string {
	switch e.mode.Type() {
	case fs.ModeDir:
		return "a folder"
	case fs.ModeSymlink:
		return "a link to " + e.target
	default:
		return "a file"
	}
}
