package charts

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The manifests in config/ are the source; the chart is another way to them.
// One object is missing from it: Helm keeps its release in the namespace, which
// therefore must be there before.
func TestTheChartGivesTheSameAsKustomize(t *testing.T) {
	t.Parallel()
	for folder, values := range map[string]string{
		"default":    "default-values.yaml",
		"namespaced": "namespaced-values.yaml",
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			want := kustomize(t, folder)
			delete(want, "Namespace bucketoperator-system")
			got := render(t, "--values="+filepath.Join(chart, "ci", values))
			if diff := cmp.Diff(want.plain(), got.plain()); diff != "" {
				t.Errorf("config/%s (-) and the chart with %s (+):\n%s", folder, values, diff)
			}
		})
	}
}

// The alerts and the dashboard of the chart are those of config/monitoring, which
// is a component: it is put on top of config/default to be rendered.
func TestTheChartsMonitoringIsThatOfKustomize(t *testing.T) {
	t.Parallel()
	want := kustomize(t, "monitoring")
	all := render(t, "--set=monitoring.enabled=true")
	without := render(t)
	got := objects{}
	for key, object := range all {
		if without[key] == nil {
			got[key] = object
		}
	}
	if diff := cmp.Diff(want.plain(), got.plain()); diff != "" {
		t.Errorf("config/monitoring (-) and the chart with monitoring.enabled (+):\n%s", diff)
	}
	if _, complaints, err := helm(t, "template", "bucketoperator", chart, "--set=monitoring.enabled=true,metrics.enabled=false"); err == nil {
		t.Errorf("monitoring without metrics was accepted: %s", complaints)
	}
}

func TestMonitoringTakesLabelsAndACertificateToTrust(t *testing.T) {
	t.Parallel()
	all := render(t, "--set=monitoring.enabled=true,monitoring.labels.release=prometheus,monitoring.tlsConfig.serverName=metrics.example")
	without, labelled := render(t), 0
	for key, object := range all {
		if without[key] != nil {
			continue
		}
		labelled++
		if object.GetLabels()["release"] != "prometheus" || object.GetLabels()["app.kubernetes.io/component"] != "monitoring" {
			t.Errorf("%s has the labels %v", key, object.GetLabels())
		}
		if object.GetKind() != "ServiceMonitor" {
			continue
		}
		endpoints, _, err := unstructured.NestedSlice(object.Object, "spec", "endpoints")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"serverName": "metrics.example"}
		if diff := cmp.Diff(want, endpoints[0].(map[string]any)["tlsConfig"]); diff != "" {
			t.Errorf("tlsConfig (-want +got):\n%s", diff)
		}
	}
	if labelled != 3 {
		t.Errorf("monitoring adds %d objects, want 3", labelled)
	}
}

func TestAReleaseOfAnotherNameHasItsOwnObjects(t *testing.T) {
	t.Parallel()
	first := parse(t, mustHelm(t, "template", "bucketoperator", chart, "--namespace=one", "--set=crds.install=false"))
	second := parse(t, mustHelm(t, "template", "team", chart, "--namespace=two", "--set=crds.install=false"))
	if len(first) != len(second) {
		t.Errorf("one release has %d objects, the other %d", len(first), len(second))
	}
	for key, object := range second {
		if first[key] != nil {
			t.Errorf("both releases have %s", key)
		}
		if namespace := object.GetNamespace(); namespace != "" && namespace != "two" {
			t.Errorf("%s is in another namespace than its release", key)
		}
	}
}

func TestALongNameIsRefused(t *testing.T) {
	t.Parallel()
	_, complaints, err := helm(t, "template", "a-release-of-a-rather-long-name", chart)
	if err == nil || !contains(complaints, `"a-release-of-a-rather-long-name" is too long`) {
		t.Errorf("got %v: %s", err, complaints)
	}
}

func TestWhatTheAPIServerWouldRefuseIsRefusedBefore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a dot in the name":     {[]string{"my.bucketoperator"}, "has a dot"},
		"no leader":             {[]string{"bucketoperator", "--set=extraArgs={--leader-elect=false}"}, "extraArgs has --leader-elect"},
		"other ports of probes": {[]string{"bucketoperator", "--set=extraArgs={--health-probe-bind-address=0}"}, "extraArgs has --health-probe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, complaints, err := helm(t, append([]string{"template", test.args[0], chart}, test.args[1:]...)...)
			if err == nil || !contains(complaints, test.want) {
				t.Errorf("got %v: %s", err, complaints)
			}
		})
	}
}

// A key of values.yaml with nothing below it is null, and so are keys that are new
// since the release whose values are used again.
func TestWhatIsLeftEmptyIsNone(t *testing.T) {
	t.Parallel()
	want := render(t, "--set=monitoring.enabled=true").plain()
	got := render(t, "--set=monitoring.enabled=true,monitoring.labels=null,monitoring.tlsConfig=null,podAnnotations=null").plain()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("null makes a difference:\n%s", diff)
	}
}

// Names in the rules are the release's, also where they look like numbers.
func TestTheAlertsNameTheReleasesNamespace(t *testing.T) {
	t.Parallel()
	all := mustHelm(t, "template", "bucketoperator", chart, "--namespace=2024", "--set=monitoring.enabled=true")
	for _, want := range []string{`namespace: "2024"`, `namespace=\"2024\"`, "kubectl -n 2024 get"} {
		if !strings.Contains(all, want) && !strings.Contains(all, strings.ReplaceAll(want, `\"`, `"`)) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, wrong := range []string{"bucketoperator-system", "namespace: 2024\n"} { // that is a number
		if strings.Contains(all, wrong) {
			t.Errorf("there is %q", wrong)
		}
	}
}

// A parent chart's condition is a value of the chart that it switches on.
func TestAParentMaySwitchTheChartOn(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(render(t).plain(), render(t, "--set=enabled=true").plain()); diff != "" {
		t.Errorf("enabled makes a difference:\n%s", diff)
	}
}

func TestAnAnnotationOfThePodsMayTakeThePlaceOfTheCharts(t *testing.T) {
	t.Parallel()
	all := render(t, `--set=podAnnotations.kubectl\.kubernetes\.io/default-container=mine`)
	deployment := all["Deployment bucketoperator-system/bucketoperator-controller-manager"]
	got, _, err := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "annotations")
	want := map[string]string{"kubectl.kubernetes.io/default-container": "mine"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("annotations (-want +got): %v\n%s", err, diff)
	}
}

// A namespace may be called 123, which YAML takes for a number.
func TestANumberIsANamespaceToo(t *testing.T) {
	t.Parallel()
	all := parse(t, mustHelm(t, "template", "bucketoperator", chart, "--namespace=123", "--set-json", `namespaces=["456"]`))
	for _, key := range []string{
		"Deployment 123/bucketoperator-controller-manager",
		"Role 456/bucketoperator-manager-role",
		"RoleBinding 456/bucketoperator-manager-rolebinding",
	} {
		if all[key] == nil {
			t.Errorf("there is no %s, but %v", key, all.keys())
		}
	}
}
