package observability_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// readRules reads the PrometheusRule. A field that the kind does not have is an error.
func readRules(t *testing.T) []monitoringv1.Rule {
	t.Helper()
	var manifest monitoringv1.PrometheusRule
	readManifest(t, &manifest, "prometheusrule.yaml")
	var rules []monitoringv1.Rule
	for _, group := range manifest.Spec.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules
}

func readManifest(t *testing.T, into any, name string) {
	t.Helper()
	text, err := os.ReadFile(inModule(t, "config", "monitoring", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
}

// writeRules writes the rules into folder as Prometheus reads them, and
// returns the file's path.
func writeRules(t *testing.T, folder string) string {
	t.Helper()
	var manifest struct {
		Spec any `json:"spec"`
	}
	text, err := os.ReadFile(inModule(t, "config", "monitoring", "prometheusrule.yaml"))
	if err == nil {
		err = yaml.Unmarshal(text, &manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.Marshal(manifest.Spec); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "rules.yaml") // as the tests call it
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ruleTests are the files with tests of the alerts, for promtool.
func ruleTests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(inModule(t, "config", "monitoring", "alerts", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the tests of the alerts: %v, %v", files, err)
	}
	return files
}

func TestRulesAreValid(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", writeRules(t, t.TempDir()))
}

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeRules(t, folder)
	for _, file := range ruleTests(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(folder, "test-"+filepath.Base(file))
			if err := os.WriteFile(copied, text, 0o600); err != nil {
				t.Fatal(err)
			}
			promtool(t, "test", "rules", copied)
		})
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), ofPrometheus(t, "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// ruleTest is the part of a test for promtool that tells what it expects.
type ruleTest struct {
	Tests []struct {
		AlertRuleTest []struct {
			Alertname string `json:"alertname"`
			ExpAlerts []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
		PromqlExprTest []struct {
			Expr       string `json:"expr"`
			ExpSamples []any  `json:"exp_samples"`
		} `json:"promql_expr_test"`
	} `json:"tests"`
}

// throughout finds the alert of a query that looks at a whole test.
var throughout = regexp.MustCompile(`^count_over_time\(ALERTS\{alertname="(\w+)"`)

func TestEveryAlertIsTestedBothWays(t *testing.T) {
	t.Parallel()
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, file := range ruleTests(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var content ruleTest
		if err := yaml.Unmarshal(text, &content); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		for _, test := range content.Tests {
			for _, expected := range test.AlertRuleTest {
				fires[expected.Alertname] = fires[expected.Alertname] || len(expected.ExpAlerts) > 0
			}
			for _, expected := range test.PromqlExprTest {
				if alert := throughout.FindStringSubmatch(expected.Expr); alert != nil && len(expected.ExpSamples) == 0 {
					silent[alert[1]] = true
				}
			}
		}
	}
	for _, rule := range readRules(t) {
		if rule.Alert == "" {
			continue
		}
		if !fires[rule.Alert] {
			t.Errorf("no test has %s fire", rule.Alert)
		}
		if !silent[rule.Alert] {
			t.Errorf("no test has %s stay silent from beginning to end", rule.Alert)
		}
	}
}

func TestEveryAlertSaysHowBadItIsAndWhatToDo(t *testing.T) {
	t.Parallel()
	runbook, err := os.ReadFile(inModule(t, "docs", "runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	alerts := map[string]bool{}
	for _, rule := range readRules(t) {
		if rule.Alert == "" {
			continue
		}
		alerts[rule.Alert] = true
		if severity := rule.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, severity)
		}
		for _, annotation := range []string{"summary", "description"} {
			if !strings.HasSuffix(rule.Annotations[annotation], ".") {
				t.Errorf("%s has no %s that is a sentence: %q", rule.Alert, annotation, rule.Annotations[annotation])
			}
		}
		if want := "docs/runbook.md#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s leads to %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
		}
		if !strings.Contains(string(runbook), "\n## "+rule.Alert+"\n") {
			t.Errorf("docs/runbook.md has no section %s", rule.Alert)
		}
	}
	for section := range strings.Lines(string(runbook)) {
		if name, ok := strings.CutPrefix(section, "## BucketOperator"); ok && !alerts["BucketOperator"+strings.TrimSpace(name)] {
			t.Errorf("docs/runbook.md has a section BucketOperator%s and there is no such alert", name)
		}
	}
}
