package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const before = `
metadata: {name: things.example.com}
spec:
  scope: Namespaced
  names: {kind: Thing, plural: things, shortNames: [th], singular: thing, listKind: ThingList, categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.color}]
    schema:
      openAPIV3Schema:
        description: A thing.
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations: [{rule: self.size < 50, message: too large}]
            properties:
              size: {type: integer, minimum: 1, maximum: 100}
              color: {type: string, enum: [red, green], default: red}
              name: {type: string, minLength: 1, maxLength: 63, pattern: "^[a-z]+$"}
              when: {type: string}
              tags:
                type: array
                minItems: 1
                maxItems: 8
                x-kubernetes-list-type: set
                items: {type: string, maxLength: 20}
              labels:
                type: object
                maxProperties: 16
                additionalProperties: {type: string, maxLength: 63}
              note: {type: string, nullable: true}
  - name: v1beta1
    served: true
    storage: false
    subresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}}
    schema: {openAPIV3Schema: {type: object}}
`

func define(t *testing.T, text string) definitions {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), crd); err != nil {
		t.Fatal(err)
	}
	return definitions{crd.Name: crd}
}

// edited is the definition with each text replaced by the one after it.
func edited(t *testing.T, replacements ...string) definitions {
	t.Helper()
	text := before
	for i := 0; i < len(replacements); i += 2 {
		if strings.Count(text, replacements[i]) != 1 {
			t.Fatalf("%q is not there once", replacements[i])
		}
		text = strings.Replace(text, replacements[i], replacements[i+1], 1)
	}
	return define(t, text)
}

func TestWhatTakesSomethingAwayIsABreak(t *testing.T) {
	t.Parallel()
	const tags = "              tags:\n"
	for name, test := range map[string]struct {
		replace []string
		want    string
	}{
		"a field goes":              {[]string{"when: {type: string}", "whenever: {type: string}"}, "v1.spec.when: the field is gone"},
		"a field of another type":   {[]string{"size: {type: integer, minimum: 1, maximum: 100}", "size: {type: string}"}, "v1.spec.size: the type was integer and is string"},
		"a field is required now":   {[]string{"required: [size]", "required: [size, name]"}, "v1.spec.name: the field is required now"},
		"a new field is required":   {[]string{"required: [size]", "required: [size, more]", tags, "              more: {type: string}\n" + tags}, "v1.spec.more: the field is required now"},
		"a higher minimum":          {[]string{"minimum: 1,", "minimum: 2,"}, "v1.spec.size: minimum was 1 and is 2"},
		"a lower maximum":           {[]string{"maximum: 100", "maximum: 99"}, "v1.spec.size: maximum was 100 and is 99"},
		"an exclusive maximum":      {[]string{"maximum: 100", "maximum: 100, exclusiveMaximum: true"}, "v1.spec.size: the schema differs in what this check does not know"},
		"a new bound":               {[]string{"when: {type: string}", "when: {type: string, maxLength: 9}"}, "v1.spec.when: there was no maxLength and it is 9"},
		"a longer minLength":        {[]string{"minLength: 1", "minLength: 3"}, "v1.spec.name: minLength was 1 and is 3"},
		"a shorter maxLength":       {[]string{"minLength: 1, maxLength: 63", "minLength: 1, maxLength: 62"}, "v1.spec.name: maxLength was 63 and is 62"},
		"a higher minItems":         {[]string{"minItems: 1", "minItems: 2"}, "v1.spec.tags: minItems was 1 and is 2"},
		"a lower maxItems":          {[]string{"maxItems: 8", "maxItems: 7"}, "v1.spec.tags: maxItems was 8 and is 7"},
		"a lower maxProperties":     {[]string{"maxProperties: 16", "maxProperties: 15"}, "v1.spec.labels: maxProperties was 16 and is 15"},
		"a new minProperties":       {[]string{"maxProperties: 16", "maxProperties: 16\n                minProperties: 1"}, "v1.spec.labels: there was no minProperties and it is 1"},
		"stricter items":            {[]string{"maxLength: 20", "maxLength: 19"}, "v1.spec.tags[*]: maxLength was 20 and is 19"},
		"stricter values of a map":  {[]string{"additionalProperties: {type: string, maxLength: 63}", "additionalProperties: {type: string, maxLength: 62}"}, "v1.spec.labels[*]: maxLength was 63 and is 62"},
		"an enum's value goes":      {[]string{"enum: [red, green]", "enum: [red, blue]"}, `v1.spec.color: the enum has no "green" any more`},
		"a new enum":                {[]string{"when: {type: string}", "when: {type: string, enum: [now]}"}, "v1.spec.when: there was no enum"},
		"another pattern":           {[]string{`"^[a-z]+$"`, `"^[a-y]+$"`}, "v1.spec.name: the pattern was ^[a-z]+$ and is ^[a-y]+$"},
		"a new format":              {[]string{"when: {type: string}", "when: {type: string, format: date-time}"}, "v1.spec.when: the format was none and is date-time"},
		"another rule":              {[]string{"rule: self.size < 50", "rule: self.size < 40"}, "v1.spec: there was no rule self.size < 40"},
		"another default":           {[]string{"default: red", "default: green"}, `v1.spec.color: the default was "red" and is "green"`},
		"a new default":             {[]string{"when: {type: string}", "when: {type: string, default: now}"}, `v1.spec.when: the default was none and is "now"`},
		"null is not allowed":       {[]string{", nullable: true", ""}, "v1.spec.note: the schema differs in what this check does not know"},
		"a list merges differently": {[]string{"list-type: set", "list-type: atomic"}, "v1.spec.tags: the schema differs in what this check does not know"},
		"a version goes":            {[]string{"name: v1beta1", "name: v1beta2"}, "v1beta1: the version is gone"},
		"a version is not served":   {[]string{"served: true\n    storage: false", "served: false\n    storage: false"}, "v1beta1: the version is not served any more"},
		"the status goes":           {[]string{"    subresources: {status: {}}\n", ""}, "v1: the subresource status is gone"},
		"a selectable field goes":   {[]string{"    selectableFields: [{jsonPath: .spec.color}]\n", ""}, "v1: the selectable field .spec.color is gone"},
		"another scope":             {[]string{"scope: Namespaced", "scope: Cluster"}, "the scope was Namespaced and is Cluster"},
		"another kind":              {[]string{"kind: Thing", "kind: Item"}, "the kind was Thing (things) and is Item (things)"},
		"a category goes":           {[]string{"categories: [all]", "categories: [mine]"}, "the category all is gone"},
		"another singular":          {[]string{"singular: thing", "singular: item"}, `one is called "item", many are a "ThingList"; they were "thing" and "ThingList"`},
		"another kind of lists":     {[]string{"listKind: ThingList", "listKind: Things"}, `one is called "thing", many are a "Things"; they were "thing" and "ThingList"`},
		"another conversion":        {[]string{"  scope: Namespaced", "  conversion: {strategy: Webhook}\n  scope: Namespaced"}, "the conversion between versions is another"},
		"a status of its own":       {[]string{"subresources: {scale:", "subresources: {status: {}, scale:"}, "v1beta1: the subresource status is new: who writes the status with the rest loses it"},
		"scale looks elsewhere":     {[]string{"specReplicasPath: .spec.a", "specReplicasPath: .spec.b"}, "v1beta1: the subresource scale looks at other fields"},
		"the scale goes":            {[]string{"    subresources: {scale: {specReplicasPath: .spec.a, statusReplicasPath: .status.a}}\n", ""}, "v1beta1: the subresource scale is gone"},
		"a short name goes":         {[]string{"shortNames: [th]", "shortNames: [it]"}, "the short name th is gone"},
		"another definition":        {[]string{"name: things.example.com", "name: items.example.com"}, "the definition is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := compare(define(t, before), edited(t, test.replace...))
			if diff := cmp.Diff([]string{"things.example.com: " + test.want}, got); diff != "" {
				t.Errorf("breaks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatOnlyAddsIsNone(t *testing.T) {
	t.Parallel()
	const tags = "              tags:\n"
	for name, replace := range map[string][]string{
		"nothing":                        nil,
		"an optional field":              {tags, "              more: {type: string, maxLength: 5}\n" + tags},
		"a required field with default":  {"required: [size]", "required: [size, more]", tags, "              more: {type: string, default: x}\n" + tags},
		"a field is optional now":        {"required: [size]", "required: []"},
		"wider bounds":                   {"minimum: 1, maximum: 100", "minimum: 0, maximum: 1000", "minLength: 1, maxLength: 63", "maxLength: 64", "maxItems: 8", "maxItems: 9"},
		"no bounds":                      {", minimum: 1, maximum: 100", ""},
		"another value of an enum":       {"enum: [red, green]", "enum: [blue, green, red]"},
		"no enum":                        {"enum: [red, green], ", ""},
		"no pattern":                     {`, pattern: "^[a-z]+$"`, ""},
		"no rule":                        {"            x-kubernetes-validations: [{rule: self.size < 50, message: too large}]\n", ""},
		"a rule's message":               {"message: too large", "message: make it smaller"},
		"no conversion, in words":        {"  scope: Namespaced", "  conversion: {strategy: None}\n  scope: Namespaced"},
		"descriptions":                   {"description: A thing.", "description: Something."},
		"another version":                {"  - name: v1beta1", "  - {name: v2, served: true, storage: false}\n  - name: v1beta1"},
		"a short name and a subresource": {"shortNames: [th]", "shortNames: [th, it]", "subresources: {status: {}}", "subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := compare(define(t, before), edited(t, replace...)); len(got) > 0 {
				t.Errorf("got %q, want no break", got)
			}
		})
	}
	t.Run("another definition", func(t *testing.T) {
		t.Parallel()
		after := define(t, before)
		maps.Copy(after, define(t, strings.Replace(before, "things.example.com", "items.example.com", 1)))
		if got := compare(define(t, before), after); len(got) > 0 {
			t.Errorf("got %q, want no break", got)
		}
	})
}
