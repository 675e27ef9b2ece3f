package observability_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster"
)

// prometheus is a Prometheus that collects an operator's metrics.
type prometheus struct {
	prometheusv1.API
	program *localcluster.Program
}

// startPrometheus starts a Prometheus that collects the scene's metrics, by
// TLS and with a token, and evaluates the rules. It is stopped at the test's end.
func startPrometheus(t *testing.T, s *scene) *prometheus {
	t.Helper()
	folder := t.TempDir()
	token := filepath.Join(folder, "token")
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{writeRules(t, folder)},
		"scrape_configs": []any{map[string]any{
			"job_name": "bucketoperator", "scheme": "https",
			"authorization":  map[string]any{"credentials_file": token},
			"tls_config":     map[string]any{"ca_file": s.certificate.file()},
			"static_configs": []any{map[string]any{"targets": []string{s.address}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file, address := filepath.Join(folder, "prometheus.yaml"), freeAddress(t)
	if err := errors.Join(os.WriteFile(token, []byte(s.token), 0o600), os.WriteFile(file, config, 0o600)); err != nil {
		t.Fatal(err)
	}
	program, err := localcluster.StartProgram("Prometheus", ofPrometheus(t, "prometheus"), []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(folder, "data"),
		"--web.listen-address=" + address, "--log.level=warn",
	}, filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := program.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheus{API: prometheusv1.NewAPI(client), program: program}
	p.waitUntilItCollects(t)
	return p
}

func (p *prometheus) waitUntilItCollects(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func(ctx context.Context) string {
		select {
		case <-p.program.Ended():
			t.Fatal(p.program.Err())
		default:
		}
		targets, err := p.Targets(ctx)
		if err != nil {
			return err.Error()
		}
		for _, target := range targets.Active {
			if target.Health != prometheusv1.HealthGood {
				return fmt.Sprintf("collecting from %s: %s %s", target.ScrapeURL, target.Health, target.LastError)
			}
		}
		if len(targets.Active) != 1 {
			return fmt.Sprintf("%d targets", len(targets.Active))
		}
		return ""
	})
}

// lacks tells what is wrong with the answer to a query: an error, no series,
// or none with a number. It is empty when nothing is.
func (p *prometheus) lacks(ctx context.Context, query string) string {
	value, _, err := p.Query(ctx, query, time.Now())
	if err != nil {
		return err.Error()
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return fmt.Sprintf("the answer is a %s", value.Type())
	}
	for _, sample := range vector {
		if !math.IsNaN(float64(sample.Value)) {
			return ""
		}
	}
	return fmt.Sprintf("no number in %d series", len(vector))
}
