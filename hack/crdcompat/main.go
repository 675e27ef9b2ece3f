// Command crdcompat fails if a custom resource definition in config/crd/bases
// takes something away from whoever uses that of the last release: a field, a
// version, or values that were valid. It prints a line for each such break.
//
// The last release's definitions are kept in the folder baseline, with the
// revision that they are from: a shallow clone and an unpacked archive are
// checked as well. Where git knows the revision, the copies must be true, and no
// newer release may exist. `go run ./hack/crdcompat -set v0.2.0` copies those of
// another revision.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// crds is where the definitions are, in every revision.
const crds = "config/crd/bases"

func main() {
	root := flag.String("root", ".", "`FOLDER` of the project")
	set := flag.String("set", "", "`REVISION` to copy the baseline from; nothing is checked")
	flag.Parse()
	baseline := baseline{root: *root, folder: filepath.Join(*root, "hack", "crdcompat", "baseline")}
	breaks, err := run(context.Background(), baseline, *set)
	if err != nil {
		fmt.Fprintln(os.Stderr, "crdcompat:", err)
		os.Exit(2)
	}
	for _, line := range breaks {
		fmt.Println(line)
	}
	if len(breaks) > 0 {
		fmt.Println("Users of the last release would be broken: keep what was there, and add beside it.")
		os.Exit(1)
	}
}

func run(ctx context.Context, b baseline, set string) ([]string, error) {
	if set != "" {
		return nil, b.set(ctx, set)
	}
	if err := b.verify(ctx); err != nil {
		return nil, err
	}
	before, err := readFolder(b.folder)
	if err != nil {
		return nil, err
	}
	after, err := readFolder(filepath.Join(b.root, filepath.FromSlash(crds)))
	if err != nil {
		return nil, err
	}
	return compare(before, after), nil
}
