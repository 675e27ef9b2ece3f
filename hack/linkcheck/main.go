// Command linkcheck checks the links in this project's Markdown files: that the
// file and the heading that each leads to exist. Links to other hosts are left
// alone: whether they answer today says nothing about this commit.
//
// It checks the files below the folder given, the current one if there is none,
// and exits 1 if a link is dead.
package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	dead, err := check(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(os.Stderr, "linkcheck:", err)
		os.Exit(2)
	}
	for _, d := range dead {
		fmt.Println(filepath.Join(root, d))
	}
	if len(dead) > 0 {
		os.Exit(1)
	}
}

// check returns a line, "file:line: what", for each dead link in the tree.
func check(tree fs.FS) ([]string, error) {
	docs, err := readDocs(tree)
	if err != nil {
		return nil, err
	}
	var dead []string
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		for _, l := range docs[name].links {
			if why := l.resolve(tree, docs, name); why != "" {
				dead = append(dead, fmt.Sprintf("%s:%d: %s: %s", name, l.line, l.target, why))
			}
		}
	}
	return dead, nil
}
