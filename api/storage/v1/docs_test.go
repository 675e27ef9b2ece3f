package v1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"avalonhosting.example/bucketoperator/localcluster"
)

// TestEveryConditionAndReasonIsDocumented finds the constants where they are
// declared and looks them up in the pages of the kinds.
func TestEveryConditionAndReasonIsDocumented(t *testing.T) {
	t.Parallel()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	var docs strings.Builder
	for _, page := range []string{"storagebucket.md", "bucketproviderconfig.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		docs.Write(text)
	}
	found := 0
	for _, file := range []string{"api/storage/v1/conditions.go", "internal/engine/kind.go", "internal/provider/httpapi/reasons.go"} {
		for name, value := range constantsIn(t, filepath.Join(root, file)) {
			kind := strings.ToLower(name)
			if !strings.HasPrefix(kind, "condition") && !strings.HasPrefix(kind, "reason") || steersOnly[value] {
				continue
			}
			found++
			if !strings.Contains(docs.String(), "`"+value+"`") {
				t.Errorf("%s of %s is in none of the pages", value, file)
			}
		}
	}
	if found < 40 {
		t.Errorf("only %d conditions and reasons were found", found)
	}
}

// steersOnly are the reasons that never get into a condition: the operator
// acts on them.
var steersOnly = map[string]bool{"BucketNotFound": true, "ResizeUnsupported": true}

// constantsIn are the string constants declared in a file.
func constantsIn(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if value, err := strconv.Unquote(literal.Value); err == nil {
			constants[spec.Names[0].Name] = value
		}
		return true
	})
	return constants
}
