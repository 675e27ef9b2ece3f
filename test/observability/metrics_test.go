package observability_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// scraped are the operator's metrics by name, those of histograms and
// summaries by the names of their series.
func (s *scene) scraped(t *testing.T) map[string]bool {
	t.Helper()
	var families map[string]*dto.MetricFamily
	testkit.Eventually(t, func(ctx context.Context) string {
		status, body, err := s.metrics(ctx, s.token)
		if err != nil || status != http.StatusOK {
			return fmt.Sprintf("scraping: %d %v", status, err)
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		if families, err = parser.TextToMetricFamilies(strings.NewReader(body)); err != nil {
			return err.Error()
		}
		return ""
	})
	names := map[string]bool{}
	for name, family := range families {
		switch family.GetType() {
		case dto.MetricType_HISTOGRAM:
			names[name+"_bucket"], names[name+"_sum"], names[name+"_count"] = true, true, true
		case dto.MetricType_SUMMARY:
			names[name], names[name+"_sum"], names[name+"_count"] = true, true, true
		default:
			names[name] = true
		}
	}
	return names
}

// selector finds the names of metrics: here, all of them are followed by labels.
var selector = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)\{`)

// checkNamed checks that all metrics that a query names are there.
func checkNamed(t *testing.T, there map[string]bool, where, query string) {
	t.Helper()
	for _, name := range selector.FindAllStringSubmatch(query, -1) {
		if !there[name[1]] {
			t.Errorf("%s asks for %s, which the operator does not have", where, name[1])
		}
	}
}

// described finds the operator's own metrics in the documentation.
var described = regexp.MustCompile("(?m)^\\| `(bucketoperator_[a-z_]+)")

func checkDescribed(t *testing.T, there map[string]bool) {
	t.Helper()
	page, err := os.ReadFile(inModule(t, "docs", "observability.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, name := range described.FindAllStringSubmatch(string(page), -1) {
		told[name[1]] = true
		// These are there only while passes wait for a worker: internal/fairqueue tests them.
		if strings.HasPrefix(name[1], "bucketoperator_queue_") {
			continue
		}
		if !there[name[1]] && !there[name[1]+"_count"] {
			t.Errorf("docs/observability.md describes %s, which the operator does not have", name[1])
		}
	}
	for name := range there {
		plain := name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			plain = strings.TrimSuffix(plain, suffix)
		}
		if strings.HasPrefix(name, "bucketoperator_") && !told[plain] {
			t.Errorf("docs/observability.md does not describe %s", plain)
		}
	}
}

// hang has a call in flight to a provider that does not answer.
func (s *scene) hang(t *testing.T) {
	t.Helper()
	hanging, err := mockprovider.New(mockprovider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	hanging.Faults().Add(mockprovider.Rule{Fault: mockprovider.Fault{Hang: true}})
	s.Create(t, testkit.Config("hanging", serve(t, hanging), ""))
	s.Create(t, testkit.Bucket("hung", testkit.ServedBy("hanging")))
}

func TestMetricsAreThereAndDescribed(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.hang(t)
	var there map[string]bool
	testkit.Eventually(t, func(context.Context) string {
		if there = s.scraped(t); !there["bucketoperator_egress_oldest_call_seconds"] || !there["bucketoperator_egress_namespace_in_flight_calls"] {
			return "no call takes long"
		}
		return ""
	})
	for _, rule := range readRules(t) {
		name := rule.Alert + rule.Record
		if selectors := selector.FindString(rule.Expr.String()); selectors == "" && !strings.Contains(rule.Expr.String(), ":") {
			t.Errorf("%s selects nothing: %s", name, rule.Expr.String())
		}
		checkNamed(t, there, name, rule.Expr.String())
	}
	checkDescribed(t, there)
}
