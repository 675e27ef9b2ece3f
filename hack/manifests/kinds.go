package main

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// editedBy is the annotation of a definition whose objects not everybody may edit
// who may edit in a namespace. Its only value is admin. A type has it by
//
//	// +kubebuilder:metadata:annotations="avalonhosting.example/edited-by=admin"
const editedBy = "avalonhosting.example/edited-by"

// kind is what a definition tells.
type kind struct {
	file                          string // its name in the folder
	group, name, singular, plural string
	adminsOnly                    bool // whether a namespace's admins alone may edit
}

// readKinds reads the definitions in a folder, in the order of their files.
func readKinds(folder string) ([]kind, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for definitions: %w", err)
	}
	var kinds []kind
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return nil, fmt.Errorf("reading the definition in %s: %w", file, err)
		}
		editors, restricted := crd.Annotations[editedBy]
		if restricted && editors != "admin" {
			return nil, fmt.Errorf("%s: the annotation %s is %q, and can only be admin", file, editedBy, editors)
		}
		kinds = append(kinds, kind{
			file: filepath.Base(file), group: crd.Spec.Group, name: crd.Spec.Names.Kind,
			singular: crd.Spec.Names.Singular, plural: crd.Spec.Names.Plural, adminsOnly: restricted,
		})
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("there are no definitions in %s", folder)
	}
	return kinds, nil
}
