package main

import (
	"net"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestBadFlagsAreToldInOneLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ flags, want string }{
		"unknown flag":             {"--no-such-flag", "-no-such-flag"},
		"argument":                 {"run", `unexpected argument "run"`},
		"no number":                {"--max-concurrent-reconciles=many", "-max-concurrent-reconciles"},
		"no workers":               {"--max-concurrent-reconciles=0", "--max-concurrent-reconciles must be at least 1"},
		"no resync":                {"--resync-interval=0s", "--resync-interval must be at least 1s"},
		"no time to stop":          {"--graceful-shutdown-timeout=0s", "--graceful-shutdown-timeout must be above 0"},
		"unknown controller":       {"--controllers=storagebucket,cache", `there is no controller "cache"; known are storagebucket`},
		"empty controller":         {"--controllers=", "a name is empty"},
		"bad namespace":            {"--namespaces=a,B", `"B" is no name of a namespace`},
		"endpoint without scheme":  {"--default-provider-endpoint=buckets.example.com", "--default-provider-endpoint must begin with http:// or https://"},
		"endpoint that is no URL":  {"--default-provider-endpoint=https://[::1", "--default-provider-endpoint is not a URL"},
		"log level":                {"--zap-log-level=loud", "-zap-log-level"},
		"lease outside a pod":      {"--leader-elect", "--leader-election-namespace"},
		"lease shorter than renew": {"--leader-elect --leader-election-namespace=x --leader-elect-lease-duration=3s", "--leader-elect-lease-duration must be longer"},
		"lease of part seconds":    {"--leader-elect --leader-election-namespace=x --leader-elect-lease-duration=7500ms", "whole seconds"},
		"renew close to retry":     {"--leader-elect --leader-election-namespace=x --leader-elect-retry-period=5s", "--leader-elect-renew-deadline must be more than"},
		"no certificate":           {"--metrics-cert-path=/no/such/folder", "/no/such/folder/tls.crt"},
		"no certificate so called": {"--metrics-cert-path=/no/such --metrics-cert-name=server.crt", "/no/such/server.crt"},
		"certificate's name alone": {"--metrics-cert-name=server.crt", "no use without --metrics-cert-path"},
		"key's name alone":         {"--metrics-cert-key=server.key", "no use without --metrics-cert-path"},
		"certificate for nothing":  {"--metrics-secure=false --metrics-cert-path=/x", "no use with --metrics-secure=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newProgram(t, strings.Fields(test.flags)...).expectRefusal(t, exitUsage, test.want, "see --help")
		})
	}
}

func TestPasswordInAnEndpointIsNotRepeated(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "--default-provider-endpoint=https://user:canary@buckets.example.com")
	p.expectRefusal(t, exitUsage, "holds a user or password")
	if strings.Contains(p.stderr.String(), "canary") {
		t.Errorf("said %q, with the password in it", p.stderr.String())
	}
}

func TestHelpAndVersionAreNoFailure(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"--help": "-leader-elect", "--version": "bucketoperator "} {
		said, err := newProgram(t, flag).Output()
		if err != nil || !strings.Contains(string(said), want) {
			t.Errorf("%s: said %q (%v), want %q", flag, said, err, want)
		}
	}
}

func TestWithoutAClusterTheWaysToNameOneAreTold(t *testing.T) {
	t.Parallel()
	newProgram(t).expectRefusal(t, exitFailure, "give --kubeconfig, or set KUBECONFIG")
}

func TestUnreachableAPIServerIsNamed(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := "https://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	newProgram(t, kubeconfig(t, &rest.Config{Host: server})).
		expectRefusal(t, exitFailure, server, "connection refused", "check that it runs")
}

func TestCredentialsThatAreNotTakenAreTold(t *testing.T) {
	t.Parallel()
	config := testplane.Config()
	stranger := &rest.Config{Host: config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}}
	newProgram(t, kubeconfig(t, stranger)).expectRefusal(t, exitFailure, config.Host, "does not take the credentials")
}

func TestMissingCRDsAreNamed(t *testing.T) {
	t.Parallel()
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{Dir: t.TempDir(), NoControllerManager: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	}()
	newProgram(t, kubeconfig(t, cluster.Config())).
		expectRefusal(t, exitFailure, "no BucketProviderConfig and no StorageBucket of storage.avalonhosting.example/v1", "make install")
}

func TestMissingPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	config := kubeconfig(t, testplane.User("nobody-special", "system:authenticated"))
	newProgram(t, config, "--leader-elect", "--leader-election-namespace=lease-home").expectRefusal(t, exitFailure,
		"user nobody-special may not",
		"get,list,watch,patch storagebuckets.storage.avalonhosting.example in all namespaces",
		"patch storagebuckets.storage.avalonhosting.example/status in all namespaces",
		"get,list,watch,create,update,patch,delete secrets in all namespaces",
		"create leases.coordination.k8s.io in namespace lease-home",
		"create tokenreviews.authentication.k8s.io",
		"config/rbac")
}
