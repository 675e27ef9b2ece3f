package image

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// AddFromMachine adds a file, or a folder with all that is in it, of this
// machine at its own path. Symbolic links on the way and at its end are added
// with what they lead to, so that the image has the machine's layout: a merged
// /usr, the links of shared libraries, those of update-alternatives. Devices,
// sockets and pipes are errors.
func (t *Tree) AddFromMachine(name string) error {
	name, err := filepath.Abs(name)
	if err != nil {
		return fmt.Errorf("adding %s to the image: %w", name, err)
	}
	resolved, err := t.addLinks(name)
	if err != nil {
		return fmt.Errorf("adding %s to the image: %w", name, err)
	}
	return filepath.WalkDir(resolved, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("adding %s to the image: %w", name, err)
		}
		return t.addOne(name, d)
	})
}

func (t *Tree) addOne(name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return fmt.Errorf("adding %s to the image: %w", name, err)
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		return t.AddFolder(name, info.Mode())
	case fs.ModeSymlink:
		// In a folder, a link may lead nowhere, or out of it: it is added as it is.
		target, err := os.Readlink(name)
		if err != nil {
			return fmt.Errorf("adding %s to the image: %w", name, err)
		}
		return t.AddLink(name, target)
	case 0:
		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("adding %s to the image: %w", name, err)
		}
		return t.AddFile(name, info.Mode(), content)
	default:
		return fmt.Errorf("adding %s to the image: neither a file nor a folder nor a link", name)
	}
}

// addLinks adds all links that the path leads through, and returns what it leads
// to in the end.
func (t *Tree) addLinks(name string) (string, error) {
	resolved := "/"
	links := 0
	for todo := elements(name); len(todo) > 0; {
		next := path.Join(resolved, todo[0])
		todo = todo[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode().Type() != fs.ModeSymlink {
			resolved = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("it leads through more than %d links", maxLinks)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if err := t.AddLink(next, target); err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			resolved = "/"
		}
		todo = append(elements(target), todo...)
	}
	return resolved, nil
}
