package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// definitions are custom resource definitions by name.
type definitions map[string]*apiextensionsv1.CustomResourceDefinition

func readFolder(folder string) (definitions, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err == nil && len(files) == 0 {
		err = errors.New("there are none")
	}
	if err != nil {
		return nil, fmt.Errorf("looking for definitions in %s: %w", folder, err)
	}
	all := definitions{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("reading the definition in %s: %w", file, err)
		}
		all[crd.Name] = crd
	}
	return all, nil
}

// compare returns a line for each break, "name: path: what". More definitions
// than before are none.
func compare(before, after definitions) []string {
	var breaks []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		found := report{}
		if now := after[name]; now == nil {
			found.add(nil, "the definition is gone")
		} else {
			found.compareDefinitions(&before[name].Spec, &now.Spec)
		}
		for _, line := range found.breaks {
			breaks = append(breaks, name+": "+line)
		}
	}
	return breaks
}

// report collects breaks.
type report struct{ breaks []string }

func (r *report) add(path *field.Path, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if path != nil {
		what = path.String() + ": " + what
	}
	r.breaks = append(r.breaks, what)
}

func (r *report) compareDefinitions(before, after *apiextensionsv1.CustomResourceDefinitionSpec) {
	if before.Scope != after.Scope {
		r.add(nil, "the scope was %s and is %s", before.Scope, after.Scope)
	}
	if before.Names.Kind != after.Names.Kind || before.Names.Plural != after.Names.Plural {
		r.add(nil, "the kind was %s (%s) and is %s (%s)", before.Names.Kind, before.Names.Plural, after.Names.Kind, after.Names.Plural)
	}
	if before.Names.Singular != after.Names.Singular || before.Names.ListKind != after.Names.ListKind {
		r.add(nil, "one is called %q, many are a %q; they were %q and %q", after.Names.Singular, after.Names.ListKind, before.Names.Singular, before.Names.ListKind)
	}
	for _, name := range before.Names.ShortNames {
		if !slices.Contains(after.Names.ShortNames, name) {
			r.add(nil, "the short name %s is gone", name)
		}
	}
	for _, category := range before.Names.Categories {
		if !slices.Contains(after.Names.Categories, category) {
			r.add(nil, "the category %s is gone", category)
		}
	}
	if !apiequality.Semantic.DeepEqual(conversion(before), conversion(after)) {
		r.add(nil, "the conversion between versions is another")
	}
	for _, version := range before.Versions {
		r.compareVersions(version, after.Versions)
	}
}

func (r *report) compareVersions(before apiextensionsv1.CustomResourceDefinitionVersion, all []apiextensionsv1.CustomResourceDefinitionVersion) {
	path := field.NewPath(before.Name)
	i := slices.IndexFunc(all, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == before.Name })
	switch {
	case i < 0:
		r.add(path, "the version is gone")
		return
	case before.Served && !all[i].Served:
		r.add(path, "the version is not served any more")
	}
	after := all[i]
	r.compareSubresources(path, subresources(before), subresources(after))
	for _, selectable := range before.SelectableFields {
		if !slices.Contains(after.SelectableFields, selectable) {
			r.add(path, "the selectable field %s is gone", selectable.JSONPath)
		}
	}
	if before.Schema != nil && after.Schema != nil {
		r.compareSchemas(path, before.Schema.OpenAPIV3Schema, after.Schema.OpenAPIV3Schema)
	} else if before.Schema != nil || after.Schema != nil {
		r.add(path, "one has a schema, the other none")
	}
}

// conversion is what the API server takes a definition's for.
func conversion(d *apiextensionsv1.CustomResourceDefinitionSpec) *apiextensionsv1.CustomResourceConversion {
	if d.Conversion == nil {
		return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	return d.Conversion
}

func subresources(version apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceSubresources {
	if version.Subresources == nil {
		return apiextensionsv1.CustomResourceSubresources{}
	}
	return *version.Subresources
}

func (r *report) compareSubresources(path *field.Path, before, after apiextensionsv1.CustomResourceSubresources) {
	switch {
	case before.Status != nil && after.Status == nil:
		r.add(path, "the subresource status is gone")
	case before.Status == nil && after.Status != nil:
		r.add(path, "the subresource status is new: who writes the status with the rest loses it")
	}
	switch {
	case before.Scale == nil:
	case after.Scale == nil:
		r.add(path, "the subresource scale is gone")
	case !apiequality.Semantic.DeepEqual(before.Scale, after.Scale):
		r.add(path, "the subresource scale looks at other fields")
	}
}
