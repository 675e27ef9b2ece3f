package observability_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/testkit"
)

// dashboard is the part of a dashboard of Grafana that tells what it asks for.
type dashboard struct {
	UID        string  `json:"uid"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct {
		X, Y, W, H int
	} `json:"gridPos"`
	Targets []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
	Panels []panel `json:"panels"`
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(inModule(t, "config", "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// queries are those of all panels, by panel and letter, with Grafana's
// variables filled in.
func (d dashboard) queries() map[string]string {
	filled := strings.NewReplacer("$__rate_interval", "20s", "$job", "bucketoperator")
	found := map[string]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			found[p.Title+" "+target.RefID] = filled.Replace(target.Expr)
		}
	}
	return found
}

func TestDashboardIsWellFormed(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	if d.UID == "" {
		t.Error("it has no uid: each time it is loaded, links to it break")
	}
	ids, titles := map[int]bool{}, map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] {
			t.Errorf("there are two panels %d %q", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		if len(p.Panels) > 0 {
			t.Errorf("the row %q is collapsed: its panels are not looked at here", p.Title)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q asks for nothing", p.Title)
		}
		if p.GridPos.X+p.GridPos.W > 24 || p.GridPos.W == 0 || p.GridPos.H == 0 {
			t.Errorf("the panel %q is at %+v", p.Title, p.GridPos)
		}
	}
}

// TestDashboardAndRulesWork asks a Prometheus that collects a real operator's
// metrics what the dashboard would ask, while the operator is at work.
func TestDashboardAndRulesWork(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	p := startPrometheus(t, s)
	there, d := s.scraped(t), readDashboard(t)
	for name, query := range d.queries() {
		checkNamed(t, there, name, query)
		if strings.Contains(query, "$") {
			t.Errorf("%s has a variable that is not filled in: %s", name, query)
		}
	}
	for _, variable := range d.Templating.List {
		checkNamed(t, there, "the variable "+variable.Name, variable.Definition)
	}

	waiting, round := d.queries(), 0
	testkit.Eventually(t, func(ctx context.Context) string {
		round++
		s.haveALife(t, fmt.Sprintf("life-%d", round))
		var lack []string
		for name, query := range waiting {
			if lacks := p.lacks(ctx, query); lacks != "" {
				lack = append(lack, fmt.Sprintf("%s: %s\n\t%s", name, lacks, query))
			}
		}
		return strings.Join(lack, "\n")
	})
	p.checkRules(t)
}

// haveALife creates a bucket, waits until it is ready, and deletes it.
func (s *scene) haveALife(t *testing.T, name string) {
	t.Helper()
	s.Create(t, testkit.Bucket(name))
	bucket := s.WaitCondition(t, name, "Ready", metav1.ConditionTrue, "Available")
	if err := client.IgnoreNotFound(s.Client.Delete(t.Context(), bucket)); err != nil {
		t.Fatal(err)
	}
}

// checkRules checks that Prometheus could evaluate every rule, and that none
// of the alerts fires that a minute of trouble must not set off.
func (p *prometheus) checkRules(t *testing.T) {
	t.Helper()
	want := len(readRules(t))
	var alerting []prometheusv1.AlertingRule
	testkit.Eventually(t, func(ctx context.Context) string {
		answer, err := p.Rules(ctx, nil)
		if err != nil {
			return err.Error()
		}
		good := 0
		alerting = nil
		for _, group := range answer.Groups {
			for _, rule := range group.Rules {
				switch rule := rule.(type) {
				case prometheusv1.AlertingRule:
					alerting = append(alerting, rule)
					if rule.Health == prometheusv1.RuleHealthGood {
						good++
					}
				case prometheusv1.RecordingRule:
					if rule.Health == prometheusv1.RuleHealthGood {
						good++
					}
				}
			}
		}
		if good != want {
			return fmt.Sprintf("%d of %d rules were evaluated: %+v", good, want, answer)
		}
		return ""
	})
	for _, rule := range alerting {
		if rule.State == string(prometheusv1.AlertStateFiring) {
			t.Errorf("%s fires", rule.Name)
		}
	}
}
