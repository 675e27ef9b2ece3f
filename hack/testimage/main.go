// Command testimage makes an image of a static program, for tests on a node.
package main

import (
	"flag"
	"fmt"
	"os"

	"avalonhosting.example/bucketoperator/localcluster/image"
)

func main() {
	entrypoint := flag.String("entrypoint", "/program", "`path` of the program in the image")
	program := flag.String("program", "", "`file` of the program")
	reference := flag.String("reference", "", "`name` of the image")
	output := flag.String("o", "", "`file` to write the archive to")
	flag.Parse()
	if err := write(*program, *entrypoint, *reference, *output); err != nil {
		fmt.Fprintln(os.Stderr, "testimage:", err)
		os.Exit(1)
	}
}

func write(program, entrypoint, reference, output string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	tree := image.NewTree()
	if err := tree.AddFile(entrypoint, 0o755, content); err != nil {
		return err
	}
	built, err := image.Build(tree, image.Config{Entrypoint: []string{entrypoint}})
	if err != nil {
		return err
	}
	return image.WriteFile(output, reference, built)
}
