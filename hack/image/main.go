// Command image packs the operator into a container image, without a container
// runtime, and writes a bill of materials beside it. `make image` calls it.
//
// The image is what the Dockerfile gives: the static program, certificates of
// the public authorities, and a user who is nobody.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"avalonhosting.example/bucketoperator/localcluster/image"
)

// options are what the flags say, and the environment.
type options struct {
	program   string
	version   string
	reference string
	archive   string
	bom       string
	created   time.Time
}

func main() {
	var o options
	flag.StringVar(&o.program, "program", "bin/bucketoperator", "`FILE` of the program")
	flag.StringVar(&o.version, "version", "", "version of the program")
	flag.StringVar(&o.reference, "reference", "", "`NAME:TAG` of the image, registry included")
	flag.StringVar(&o.archive, "archive", "bin/bucketoperator-image.tar", "`FILE` to write the image to")
	flag.StringVar(&o.bom, "bom", "bin/bucketoperator.cdx.json", "`FILE` to write the bill of materials to, in CycloneDX's JSON")
	flag.Parse()
	if err := pack(o); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func pack(o options) error {
	created, err := image.SourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	o.created = created
	program, err := readProgram(o.program)
	if err != nil {
		return err
	}
	built, err := buildImage(program, o)
	if err != nil {
		return err
	}
	bom, err := billOfMaterials(program, o)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.bom, bom, 0o644); err != nil {
		return fmt.Errorf("writing the bill of materials: %w", err)
	}
	if err := image.WriteFile(o.archive, o.reference, built); err != nil {
		return err
	}
	digest, err := built.Digest()
	if err != nil {
		return fmt.Errorf("reading the image's digest: %w", err)
	}
	fmt.Printf("%s: %s, %s\n%s: what is in it\n", o.archive, o.reference, digest, o.bom)
	return nil
}
