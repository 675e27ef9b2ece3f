// Command manifests writes what follows from the custom resource definitions in
// config/crd/bases: the roles of users for each kind, and the lists of kinds in
// kustomizations. `make manifests` calls it after controller-gen.
//
// In files that people write it replaces the lines of one list and nothing else.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

func main() {
	root := flag.String("root", ".", "`FOLDER` of the project")
	flag.Parse()
	if err := write(filepath.Join(*root, "config")); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

// write writes all that follows from the definitions into a folder like config.
func write(config string) error {
	kinds, err := readKinds(filepath.Join(config, "crd", "bases"))
	if err != nil {
		return err
	}
	roles, err := writeUserRoles(filepath.Join(config, "rbac"), kinds)
	if err != nil {
		return err
	}
	samples, err := filepath.Glob(filepath.Join(config, "samples", "*_*.yaml"))
	if err != nil {
		return fmt.Errorf("looking for samples: %w", err)
	}
	var crds, health, names []string
	for _, kind := range kinds {
		crds = append(crds, "- bases/"+kind.file)
		health = append(health, fmt.Sprintf("  - resource.customizations.health.%s_%s=health.lua", kind.group, kind.name))
	}
	for _, sample := range samples {
		names = append(names, "- "+filepath.Base(sample))
	}
	return errors.Join(
		replaceList(filepath.Join(config, "crd", "kustomization.yaml"), `- bases/`, crds),
		replaceList(filepath.Join(config, "rbac", "kustomization.yaml"), `- .*_user_roles\.yaml$`, roles),
		replaceList(filepath.Join(config, "argocd", "kustomization.yaml"), `  - resource\.customizations\.health\.`, health),
		replaceList(filepath.Join(config, "samples", "kustomization.yaml"), `- .*\.yaml$`, names),
	)
}

// replaceList puts lines in the place of the one list in a file whose lines begin
// with the pattern.
func replaceList(file, pattern string, lines []string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading a list of kinds: %w", err)
	}
	list := regexp.MustCompile(`(?m)(^` + pattern + `.*\n)+`)
	places := list.FindAllIndex(text, -1)
	if len(places) != 1 {
		return fmt.Errorf("%s has %d lists of %s, want one to replace", file, len(places), pattern)
	}
	var replaced []byte
	for _, line := range lines {
		replaced = append(replaced, line+"\n"...)
	}
	text = slices.Concat(text[:places[0][0]], replaced, text[places[0][1]:])
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("writing a list of kinds: %w", err)
	}
	return nil
}
