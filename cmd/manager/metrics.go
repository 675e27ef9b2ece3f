package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Names of the files in --metrics-cert-path, unless flags say otherwise: those
// of a Secret of type kubernetes.io/tls.
const (
	defaultCertificate = "tls.crt"
	defaultKey         = "tls.key"
)

// metricsOptions say how /metrics is served.
type metricsOptions struct {
	address  string
	secure   bool
	certPath string
	certName string
	keyName  string
}

func (m *metricsOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&m.address, "metrics-bind-address", ":8443", "`address` of /metrics; 0 for none")
	flags.BoolVar(&m.secure, "metrics-secure", true, "serve /metrics by HTTPS, to callers who may get it; false serves it by HTTP, to anybody")
	flags.StringVar(&m.certPath, "metrics-cert-path", "", "`folder` with the certificate and key for /metrics, read anew when they change (default a self-signed certificate)")
	flags.StringVar(&m.certName, "metrics-cert-name", defaultCertificate, "`name` of the certificate's file in --metrics-cert-path")
	flags.StringVar(&m.keyName, "metrics-cert-key", defaultKey, "`name` of the key's file in --metrics-cert-path")
}

func (m *metricsOptions) enabled() bool { return m.address != "" && m.address != "0" }

func (m *metricsOptions) validate() error {
	switch {
	case m.certPath == "" && (m.certName != defaultCertificate || m.keyName != defaultKey):
		return errors.New("--metrics-cert-name and --metrics-cert-key have no use without --metrics-cert-path")
	case m.certPath == "":
		return nil
	case !m.secure:
		return errors.New("--metrics-cert-path has no use with --metrics-secure=false")
	}
	// The server would take a self-signed certificate in silence.
	for _, name := range []string{m.certName, m.keyName} {
		if _, err := os.Stat(filepath.Join(m.certPath, name)); err != nil {
			return fmt.Errorf("--metrics-cert-path: %w", err)
		}
	}
	return nil
}

// server are the options of controller-runtime's metrics server.
func (m *metricsOptions) server() metricsserver.Options {
	if !m.enabled() {
		return metricsserver.Options{BindAddress: "0"}
	}
	server := metricsserver.Options{
		BindAddress: m.address, SecureServing: m.secure,
		CertDir: m.certPath, CertName: m.certName, KeyName: m.keyName,
	}
	if m.secure {
		server.FilterProvider = filters.WithAuthenticationAndAuthorization
		// A scraper needs one connection with one request at a time: what
		// HTTP/2 adds here is its denial-of-service bugs.
		server.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	}
	return server
}
