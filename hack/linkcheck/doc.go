package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// doc is what links depend on in one Markdown file.
type doc struct {
	links   []link
	anchors map[string]bool
}

var (
	fence      = regexp.MustCompile("^ {0,3}(```+|~~~+)")
	codeSpan   = regexp.MustCompile("`[^`]*`")
	inlineLink = regexp.MustCompile(`\]\(<?([^()\s>]+)>?(?:\s+"[^"]*")?\)`)
	definition = regexp.MustCompile(`^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)>?`)
	heading    = regexp.MustCompile(`^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	htmlAnchor = regexp.MustCompile(`<a\s+(?:id|name)="([^"]+)"`)
)

// skipped are folders with nothing of ours in them.
var skipped = map[string]bool{".git": true, "bin": true, "node_modules": true, "vendor": true}

func readDocs(tree fs.FS) (map[string]doc, error) {
	docs := map[string]doc{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped[entry.Name()]:
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		docs[name] = parse(string(text))
		return nil
	})
	return docs, err
}

func parse(text string) doc {
	d := doc{anchors: map[string]bool{}}
	closing := "" // of the code block that the line is in
	for i, line := range strings.Split(text, "\n") {
		if marker := fence.FindStringSubmatch(line); marker != nil {
			switch {
			case closing == "":
				closing = marker[1]
			case strings.HasPrefix(marker[1], closing):
				closing = ""
			}
			continue
		}
		if closing == "" {
			d.parseLine(i+1, line)
		}
	}
	return d
}

func (d *doc) parseLine(number int, line string) {
	if h := heading.FindStringSubmatch(line); h != nil {
		d.addHeading(h[1])
	}
	line = codeSpan.ReplaceAllString(line, "")
	for _, a := range htmlAnchor.FindAllStringSubmatch(line, -1) {
		d.anchors[a[1]] = true
	}
	found := inlineLink.FindAllStringSubmatch(line, -1)
	if def := definition.FindStringSubmatch(line); def != nil {
		found = append(found, def)
	}
	for _, f := range found {
		d.links = append(d.links, link{line: number, target: f[1]})
	}
}

// addHeading adds the heading's anchor. The second one of a name gets -1, the
// third -2, as on GitHub.
func (d *doc) addHeading(text string) {
	anchor := slug(text)
	for n := 1; d.anchors[anchor]; n++ {
		anchor = fmt.Sprintf("%s-%d", slug(text), n)
	}
	d.anchors[anchor] = true
}

// slug is the anchor that GitHub gives a heading.
func slug(heading string) string {
	// Of a link in a heading, only the text counts.
	heading = linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}
