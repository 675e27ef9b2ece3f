package observability_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestMetricsAreServedByTLSToReadersAlone(t *testing.T) {
	t.Parallel()
	namespace := testplane.Namespace(t)
	o := startOperator(t, namespace)
	for _, test := range []struct {
		whose, token string
		want         int
	}{
		{"nobody's", "", http.StatusUnauthorized},
		// controller-runtime takes a token that is not valid for a failure to find out whether it is.
		{"a made-up", "made-up", http.StatusInternalServerError},
		{"a stranger's", account(t, namespace, "stranger"), http.StatusForbidden},
		{"a reader's", metricsReader(t, namespace, "reader"), http.StatusOK},
	} {
		// A role that was just given may take a moment.
		testkit.Eventually(t, func(ctx context.Context) string {
			status, body, err := o.metrics(ctx, test.token)
			if err != nil || status != test.want {
				return fmt.Sprintf("with %s token: %d %v, want %d", test.whose, status, err, test.want)
			}
			if status != http.StatusOK && strings.Contains(body, "leader_election") {
				t.Errorf("with %s token the answer %d has metrics in it", test.whose, status)
			}
			return ""
		})
	}
}

func TestCertificateIsRenewedWithoutARestart(t *testing.T) {
	t.Parallel()
	namespace := testplane.Namespace(t)
	files := newCertificate(t)
	files.link(t, "..data/"+certificateFile, "server.crt")
	files.link(t, "..data/"+keyFile, "server.key")
	o := startOperator(t, namespace,
		"--metrics-cert-path="+files.folder, "--metrics-cert-name=server.crt", "--metrics-cert-key=server.key")
	o.certificate = files
	token := metricsReader(t, namespace, "reader")
	for range 3 {
		testkit.Eventually(t, func(ctx context.Context) string {
			status, _, err := o.metrics(ctx, token)
			if err != nil || status != http.StatusOK {
				return fmt.Sprintf("version %d: %d %v", files.version, status, err)
			}
			return ""
		})
		files.renew(t) // from now on the former one is not trusted
	}
	select {
	case <-o.program.Ended():
		t.Error(o.program.Err())
	default:
	}
}
