package observability_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"

	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// healthPrefix begins the keys of health checks in Argo CD's ConfigMap. The
// kind follows, as GROUP_KIND.
const healthPrefix = "resource.customizations.health.storage.avalonhosting.example_"

// argoConfig is the ConfigMap as users apply it.
func argoConfig(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile=tools/go.mod", "kustomize", "build", "config/argocd")
	cmd.Dir = inModule(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("building config/argocd: %v\n%s", err, &stderr)
	}
	config := &corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(text, config); err != nil {
		t.Fatal(err)
	}
	return config
}

// agreed is the word of Argo CD for each of kstatus.
var agreed = map[status.Status]string{
	status.CurrentStatus:     "Healthy",
	status.InProgressStatus:  "Progressing",
	status.FailedStatus:      "Degraded",
	status.TerminatingStatus: "Progressing", // Argo CD has no word for it
}

func TestArgoCDUnderstandsEveryState(t *testing.T) {
	t.Parallel()
	config := argoConfig(t)
	for _, s := range everyState(t) {
		t.Run(s.name, func(t *testing.T) {
			want := agreed[s.kstatus]
			if _, seen := s.object.Object["status"]; !seen {
				want = "Progressing" // here, unlike with kstatus, the kind is known
			}
			health := healthOf(t, config, s.object)
			if health.code != want || health.message == "" {
				t.Errorf("the health is %+v, want %s with a message; the object is\n%v", health, want, s.object.Object)
			}
		})
	}
}

// health is what a health check returns.
type health struct{ code, message string }

// healthOf runs the health check for an object as Argo CD does: without the
// libraries string and math, among others.
func healthOf(t *testing.T, config *corev1.ConfigMap, object *unstructured.Unstructured) health {
	t.Helper()
	script, ok := config.Data[healthPrefix+object.GetKind()]
	if !ok {
		t.Fatalf("there is no health check for %s", object.GetKind())
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	state.SetContext(t.Context())
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", luaValue(state, object.Object))
	if err := state.DoString(script); err != nil {
		t.Fatalf("running the health check: %v", err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the health check returned a %s", state.Get(-1).Type())
	}
	return health{code: lua.LVAsString(answer.RawGetString("status")), message: lua.LVAsString(answer.RawGetString("message"))}
}

// luaValue is a value of JSON in Lua.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, item := range v {
			table.RawSetString(key, luaValue(state, item))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, item := range v {
			table.Append(luaValue(state, item))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case nil:
		return lua.LNil
	}
	panic(fmt.Sprintf("no value of JSON: %T", value))
}

func TestArgoCDHealthChecksLeaveTheRestOfItsConfigAlone(t *testing.T) {
	t.Parallel()
	namespace, config := testplane.Namespace(t), argoConfig(t)
	configs := clientset(t).CoreV1().ConfigMaps(namespace)
	if _, err := configs.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "argocd-cm", Labels: map[string]string{"app.kubernetes.io/part-of": "argocd", "team": "platform"}},
		Data:       map[string]string{"url": "https://argocd.example.com"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	config.Namespace = namespace
	apply, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	live, err := configs.Patch(t.Context(), config.Name, types.ApplyPatchType, apply, metav1.PatchOptions{FieldManager: "kubectl"})
	if err != nil {
		t.Fatal(err)
	}
	script := config.Data[healthPrefix+bucketKind]
	want := map[string]string{
		"url":                     "https://argocd.example.com",
		healthPrefix + bucketKind: script, healthPrefix + configKind: script,
	}
	if diff := cmp.Diff(want, live.Data); diff != "" || !strings.Contains(script, "return") {
		t.Errorf("the ConfigMap is not as wanted (-want +got):\n%s", diff)
	}
	if live.Labels["team"] != "platform" {
		t.Errorf("the labels are %v", live.Labels)
	}
}
