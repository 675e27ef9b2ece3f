package main

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type schema = apiextensionsv1.JSONSchemaProps

// compareSchemas finds what a value could be before and cannot be after, at this
// place and below.
func (r *report) compareSchemas(path *field.Path, before, after *schema) {
	if before.Type != after.Type {
		r.add(path, "the type was %s and is %s", orNone(before.Type), orNone(after.Type))
		return // what follows would only say it again
	}
	r.compareBounds(path, before, after)
	r.compareEnums(path, before, after)
	r.compareStrings(path, before, after)
	r.compareRules(path, before, after)
	r.compareDefaults(path, before, after)
	r.compareFields(path, before, after)
	r.compareItems(path, before, after)
	if !apiequality.Semantic.DeepEqual(rest(before), rest(after)) {
		r.add(path, "the schema differs in what this check does not know")
	}
}

// rest is a schema without what is compared on its own, and without what no
// value depends on. Whatever else Kubernetes adds to schemas is then a break
// until somebody says when it is not.
func rest(s *schema) *schema {
	s = s.DeepCopy()
	s.Description, s.Title, s.Example, s.ExternalDocs = "", "", nil, nil
	s.Maximum, s.Minimum, s.MaxLength, s.MinLength = nil, nil, nil, nil
	s.MaxItems, s.MinItems, s.MaxProperties, s.MinProperties = nil, nil, nil, nil
	s.Enum, s.Pattern, s.Format, s.XValidations, s.Default = nil, "", "", nil, nil
	s.Properties, s.Required, s.Items, s.AdditionalProperties = nil, nil, nil, nil
	return s
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// compareBounds: the lower ones may sink and the upper ones rise.
func (r *report) compareBounds(path *field.Path, before, after *schema) {
	atLeast(r, path, "minimum", before.Minimum, after.Minimum)
	atMost(r, path, "maximum", before.Maximum, after.Maximum)
	atLeast(r, path, "minLength", before.MinLength, after.MinLength)
	atMost(r, path, "maxLength", before.MaxLength, after.MaxLength)
	atLeast(r, path, "minItems", before.MinItems, after.MinItems)
	atMost(r, path, "maxItems", before.MaxItems, after.MaxItems)
	atLeast(r, path, "minProperties", before.MinProperties, after.MinProperties)
	atMost(r, path, "maxProperties", before.MaxProperties, after.MaxProperties)
}

func atLeast[N int64 | float64](r *report, path *field.Path, name string, before, after *N) {
	switch {
	case after == nil:
	case before == nil:
		r.add(path, "there was no %s and it is %v", name, *after)
	case *after > *before:
		r.add(path, "%s was %v and is %v", name, *before, *after)
	}
}

func atMost[N int64 | float64](r *report, path *field.Path, name string, before, after *N) {
	switch {
	case after == nil:
	case before == nil:
		r.add(path, "there was no %s and it is %v", name, *after)
	case *after < *before:
		r.add(path, "%s was %v and is %v", name, *before, *after)
	}
}

// compareEnums: values may be added, if there is an enum at all.
func (r *report) compareEnums(path *field.Path, before, after *schema) {
	if len(after.Enum) == 0 {
		return
	}
	if len(before.Enum) == 0 {
		r.add(path, "there was no enum")
		return
	}
	for _, value := range before.Enum {
		same := func(other apiextensionsv1.JSON) bool { return string(other.Raw) == string(value.Raw) }
		if !slices.ContainsFunc(after.Enum, same) {
			r.add(path, "the enum has no %s any more", value.Raw)
		}
	}
}

// compareStrings: whether one pattern allows more than another cannot be told,
// so any other is a break.
func (r *report) compareStrings(path *field.Path, before, after *schema) {
	if after.Pattern != "" && after.Pattern != before.Pattern {
		r.add(path, "the pattern was %s and is %s", orNone(before.Pattern), after.Pattern)
	}
	if after.Format != "" && after.Format != before.Format {
		r.add(path, "the format was %s and is %s", orNone(before.Format), after.Format)
	}
}

// compareRules: a rule may go, and a message change. As with patterns, any other
// rule is a break.
func (r *report) compareRules(path *field.Path, before, after *schema) {
	for _, rule := range after.XValidations {
		if !slices.ContainsFunc(before.XValidations, func(other apiextensionsv1.ValidationRule) bool { return other.Rule == rule.Rule }) {
			r.add(path, "there was no rule %s", rule.Rule)
		}
	}
}

// compareDefaults: an object that leaves a field out means what it meant.
func (r *report) compareDefaults(path *field.Path, before, after *schema) {
	if !apiequality.Semantic.DeepEqual(before.Default, after.Default) {
		r.add(path, "the default was %s and is %s", text(before.Default), text(after.Default))
	}
}

func text(value *apiextensionsv1.JSON) string {
	if value == nil {
		return "none"
	}
	return string(value.Raw)
}

// compareFields: fields may be added, unless an object needs them.
func (r *report) compareFields(path *field.Path, before, after *schema) {
	for _, name := range slices.Sorted(maps.Keys(before.Properties)) {
		was := before.Properties[name]
		if is, there := after.Properties[name]; there {
			r.compareSchemas(path.Child(name), &was, &is)
		} else {
			r.add(path.Child(name), "the field is gone")
		}
	}
	for _, name := range after.Required {
		// What has a default is there when it is asked for.
		if !slices.Contains(before.Required, name) && after.Properties[name].Default == nil {
			r.add(path.Child(name), "the field is required now")
		}
	}
}

// compareItems compares what lists and maps are of.
func (r *report) compareItems(path *field.Path, before, after *schema) {
	switch was, is := items(before), items(after); {
	case was != nil && is != nil:
		r.compareSchemas(path.Key("*"), was, is)
	case was != nil || is != nil:
		r.add(path, "one has items, the other none")
	}
	if before.AdditionalProperties == nil && after.AdditionalProperties == nil {
		return
	}
	switch was, is := values(before), values(after); {
	case was != nil && is != nil:
		r.compareSchemas(path.Key("*"), was, is)
	case !apiequality.Semantic.DeepEqual(before.AdditionalProperties, after.AdditionalProperties):
		r.add(path, "the values of the map differ in what this check does not know")
	}
}

func items(s *schema) *schema {
	if s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

func values(s *schema) *schema {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}
