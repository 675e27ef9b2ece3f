package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
)

const (
	tableBegin = "<!-- Values: written by go test ./charts -update, from charts/bucketoperator/values.yaml. -->\n\n"
	tableEnd   = "\n<!-- End of values. -->"
)

// valuesTable describes each value that has a comment in values.yaml.
func valuesTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	rows := []string{"| Value | Meaning | Default |", "|---|---|---|"}
	var walk func(prefix string, mapping *yamlv3.Node)
	walk = func(prefix string, mapping *yamlv3.Node) {
		for pair := range slices.Chunk(mapping.Content, 2) {
			name, value := pair[0], pair[1]
			if name.HeadComment == "" {
				if value.Kind != yamlv3.MappingNode {
					t.Errorf("values.yaml does not say what %s%s is", prefix, name.Value)
				}
				walk(prefix+name.Value+".", value)
				continue
			}
			rows = append(rows, fmt.Sprintf("| `%s%s` | %s | `%s` |", prefix, name.Value, meaning(name.HeadComment), inline(t, value)))
		}
	}
	walk("", document.Content[0])
	return strings.Join(rows, "\n") + "\n"
}

// meaning is a comment without its marks.
func meaning(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return strings.TrimSuffix(strings.Join(words, " "), ".")
}

// inline writes a value on one line.
func inline(t *testing.T, node *yamlv3.Node) string {
	t.Helper()
	var value any
	if err := node.Decode(&value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheDocumentedValuesAreThoseOfTheChart(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "docs", "install.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	documented, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("docs/install.md has no place for the table, between\n%s%s", tableBegin, tableEnd)
	}
	want := valuesTable(t)
	if *update {
		if err := os.WriteFile(page, []byte(before+tableBegin+want+tableEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(documented, want); diff != "" {
		t.Errorf("docs/install.md (-) and values.yaml (+); go test ./charts -update writes it:\n%s", diff)
	}
}

func TestTheSchemaKnowsTheValuesOfTheChart(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for _, parents := range []string{"global", "enabled"} {
		delete(schema.Properties, parents) // a parent chart's to set
	}
	values := map[string]bool{}
	for name := range leaves(t, filepath.Join(chart, "values.yaml")) {
		name, _, _ = strings.Cut(name, ".")
		values[name] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(schema.Properties))); diff != "" {
		t.Errorf("values.yaml (-) and values.schema.json (+):\n%s", diff)
	}
}
