package main

import (
	"io/fs"
	"net/url"
	"path"
	"strings"
)

// link is a link in a Markdown file.
type link struct {
	line   int
	target string
}

// resolve says why the link, in the file of that name, leads nowhere. Empty
// means that it leads somewhere, or out of this tree.
func (l link) resolve(tree fs.FS, docs map[string]doc, from string) string {
	u, err := url.Parse(l.target)
	if err != nil {
		return "is no URL"
	}
	if u.Scheme != "" || u.Host != "" {
		return ""
	}
	name := from
	if u.Path != "" {
		name = path.Join(path.Dir(from), u.Path)
	}
	if strings.HasPrefix(u.Path, "/") || !fs.ValidPath(name) {
		return "leads out of the project"
	}
	if _, err := fs.Stat(tree, name); err != nil {
		return "no such file"
	}
	if target, ok := docs[name]; ok && u.Fragment != "" && !target.anchors[u.Fragment] {
		return "no such heading"
	}
	return ""
}
