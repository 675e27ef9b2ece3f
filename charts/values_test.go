package charts

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// contains ignores how a message is broken into lines.
func contains(message, part string) bool {
	return strings.Contains(strings.Join(strings.Fields(message), " "), part)
}

// leaves are the values by their path, such as metrics.enabled. What is empty in
// values.yaml is a value.
func leaves(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	var walk func(prefix string, values map[string]any)
	walk = func(prefix string, values map[string]any) {
		for name, value := range values {
			if below, ok := value.(map[string]any); ok && len(below) > 0 {
				walk(prefix+name+".", below)
			} else {
				all[prefix+name] = value
			}
		}
	}
	walk("", values)
	return all
}

func TestTheChartPassesHelmsOwnChecks(t *testing.T) {
	t.Parallel()
	for name, file := range valuesFiles(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustHelm(t, "lint", "--strict", chart, "--values="+file)
		})
	}
}

func TestEachSwitchTakesAwayWhatItNames(t *testing.T) {
	t.Parallel()
	type effect struct{ gone, changed []string }
	const (
		deployment    = "Deployment bucketoperator-system/bucketoperator-controller-manager"
		networkPolicy = "NetworkPolicy bucketoperator-system/bucketoperator-controller-manager"
	)
	metricsRoles := []string{
		"ClusterRole bucketoperator-metrics-auth-role",
		"ClusterRole bucketoperator-metrics-reader",
		"ClusterRoleBinding bucketoperator-metrics-auth-rolebinding",
	}
	switches := map[string]effect{
		"crds.install": {gone: []string{
			"CustomResourceDefinition bucketproviderconfigs.storage.avalonhosting.example",
			"CustomResourceDefinition storagebuckets.storage.avalonhosting.example",
		}},
		"userRoles.create": {gone: []string{
			"ClusterRole bucketoperator-bucketproviderconfig-editor-role",
			"ClusterRole bucketoperator-bucketproviderconfig-viewer-role",
			"ClusterRole bucketoperator-storagebucket-editor-role",
			"ClusterRole bucketoperator-storagebucket-viewer-role",
		}},
		"metrics.enabled": {
			gone:    append(slices.Clone(metricsRoles), "Service bucketoperator-system/bucketoperator-controller-manager-metrics-service"),
			changed: []string{deployment, networkPolicy},
		},
		"metrics.secure":              {gone: metricsRoles, changed: []string{deployment}},
		"podDisruptionBudget.enabled": {gone: []string{"PodDisruptionBudget bucketoperator-system/bucketoperator-controller-manager"}},
		"networkPolicy.enabled":       {gone: []string{networkPolicy}},
	}
	var known []string
	for name, value := range leaves(t, filepath.Join(chart, "values.yaml")) {
		// monitoring.enabled adds: TestTheChartsMonitoringIsThatOfKustomize.
		if name != "monitoring.enabled" && (value == true || value == false) {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	if diff := cmp.Diff(known, slices.Sorted(maps.Keys(switches))); diff != "" {
		t.Fatalf("the switches in values.yaml (-) and those tested here (+):\n%s", diff)
	}

	on := render(t).plain()
	for name, want := range switches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			off := render(t, "--set="+name+"=false").plain()
			var got effect
			for _, key := range slices.Sorted(maps.Keys(on)) {
				if after, there := off[key]; !there {
					got.gone = append(got.gone, key)
				} else if !cmp.Equal(on[key], after) {
					got.changed = append(got.changed, key)
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(effect{})); diff != "" {
				t.Errorf("what happens (-want +got):\n%s", diff)
			}
		})
	}
}

// Somebody without rights in the whole cluster can install the operator, where
// an administrator has installed the CRDs.
func TestWithEverySwitchOffNothingIsClusterWide(t *testing.T) {
	t.Parallel()
	if got := render(t, "--values="+valuesFiles(t)["bare"]).clusterWide(); len(got) > 0 {
		t.Errorf("in no namespace are %v", got)
	}
}

// update writes the golden files anew: go test ./charts -update.
var update = flag.Bool("update", false, "write what is generated, in place of comparing with it")

func TestEachValueGetsWhereItBelongs(t *testing.T) {
	t.Parallel()
	golden := filepath.Join("testdata", "full.yaml")
	got := mustHelm(t, "template", "bucketoperator", chart, "--namespace=bucketoperator-system", "--values="+valuesFiles(t)["full"],
		"--show-only=templates/deployment.yaml", "--show-only=templates/service_account.yaml")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-) and what ci/full-values.yaml gives (+); if it is right, call go test ./charts -update:\n%s", golden, diff)
	}
}

func TestTheFullValuesLeaveNoneOut(t *testing.T) {
	t.Parallel()
	own := leaves(t, filepath.Join(chart, "values.yaml"))
	full := leaves(t, valuesFiles(t)["full"])
	for name, value := range own {
		if name == "metrics.enabled" {
			continue // off, it would hide metrics.secure
		}
		changed := false
		for other, otherValue := range full {
			if other == name || strings.HasPrefix(other, name+".") {
				changed = changed || !cmp.Equal(value, otherValue)
			}
		}
		if !changed {
			t.Errorf("ci/full-values.yaml has no other value for %s", name)
		}
	}
}

func TestUnknownAndMistypedValuesAreRefused(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]string{
		"replica=3":                     "additional properties 'replica' not allowed",
		"image.name=x":                  "at '/image': additional properties 'name' not allowed",
		"metrics.enable=true":           "at '/metrics': additional properties 'enable' not allowed",
		"replicas=two":                  "at '/replicas': got string, want integer",
		"replicas=-1":                   "at '/replicas': minimum: got -1, want 0",
		"metrics.enabled=sometimes":     "at '/metrics/enabled': got string, want boolean",
		"namespaces=team-a":             "at '/namespaces': got string, want array",
		"namespaces={Team}":             "at '/namespaces/0': 'Team' does not match pattern",
		"namespaces={a,a}":              "at '/namespaces': items at 0 and 1 are equal",
		"resyncInterval=often":          "at '/resyncInterval': 'often' does not match pattern",
		"resyncInterval=10":             "at '/resyncInterval': got number, want string",
		"maxConcurrentReconciles=0":     "at '/maxConcurrentReconciles': minimum: got 0, want 1",
		"image.pullPolicy=Sometimes":    "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
		"image.digest=latest":           "at '/image/digest': 'latest' does not match pattern",
		"extraArgs={-v}":                "at '/extraArgs/0': '-v' does not match pattern",
		"defaultProviderEndpoint=here":  "at '/defaultProviderEndpoint': 'here' does not match pattern",
		"resources.request.cpu=1":       "at '/resources': additional properties 'request' not allowed",
		"nodeSelector.ssd=true":         "at '/nodeSelector/ssd': got boolean, want string",
		"affinity.podAfinity.x=1":       "at '/affinity': additional properties 'podAfinity' not allowed",
		"extraVolumes[0].emptyDir.x=1":  "at '/extraVolumes/0': missing property 'name'",
		"serviceAccount.create=false":   "at '/serviceAccount': additional properties 'create' not allowed",
		"imagePullSecrets={registry}":   "at '/imagePullSecrets/0': got string, want object",
		"networkPolicy.enabled=enabled": "at '/networkPolicy/enabled': got string, want boolean",
	} {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			_, complaints, err := helm(t, "template", "bucketoperator", chart, "--set", set)
			if err == nil || !contains(complaints, want) {
				t.Errorf("got %v, want a complaint that says %q:\n%s", err, want, complaints)
			}
		})
	}
}

// A chart that has this one as a part hands its global values down.
func TestGlobalValuesAreNotRefused(t *testing.T) {
	t.Parallel()
	render(t, "--set=global.registry=registry.example.org")
}
