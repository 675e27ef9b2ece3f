package localcluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// mastersGroup may do everything, whatever RBAC says.
const mastersGroup = "system:masters"

// pki is what the cluster's parts know one another by. etcd has an authority of
// its own, so that no user of the API can pass the API by.
type pki struct {
	kubernetes *authority
	files      *pkiFiles
}

// pkiFiles are the parts of a pki that programs read from files, and the
// credentials that this process probes them with.
type pkiFiles struct {
	ca, servingCert, servingKey     string
	etcdCA                          string
	etcdServingCert, etcdServingKey string
	etcdClientCert, etcdClientKey   string
	serviceAccountKey               string
	adminCert, adminKey             string

	etcdClient, adminClient *tls.Config
}

// newPKI makes all certificates anew, with the API server's for loopback and the
// address, and writes them into dir. Only the key that
// signs service-account tokens is kept if it is there: the tokens in an older
// cluster's data stay good.
func newPKI(dir, address string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	kubernetes, err := newAuthority("bucketoperator-local-kubernetes")
	if err != nil {
		return nil, err
	}
	etcd, err := newAuthority("bucketoperator-local-etcd")
	if err != nil {
		return nil, err
	}
	files := &pkiFiles{
		ca:                filepath.Join(dir, "ca.crt"),
		etcdCA:            filepath.Join(dir, "etcd-ca.crt"),
		serviceAccountKey: filepath.Join(dir, "service-account.key"),
	}
	if err := files.write(dir, address, kubernetes, etcd); err != nil {
		return nil, err
	}
	return &pki{kubernetes: kubernetes, files: files}, nil
}

func (f *pkiFiles) write(dir, address string, kubernetes, etcd *authority) error {
	err := errors.Join(
		os.WriteFile(f.ca, kubernetes.certPEM(), 0o644),
		os.WriteFile(f.etcdCA, etcd.certPEM(), 0o644),
		keepOrMakeKey(f.serviceAccountKey),
	)
	if err != nil {
		return err
	}

	serving, err := kubernetes.server(APIServer, address, serverService, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	if f.servingCert, f.servingKey, err = serving.write(dir, "serving"); err != nil {
		return err
	}
	etcdServing, err := etcd.server(Etcd)
	if err != nil {
		return err
	}
	if f.etcdServingCert, f.etcdServingKey, err = etcdServing.write(dir, "etcd-serving"); err != nil {
		return err
	}
	etcdClient, err := etcd.client(APIServer)
	if err != nil {
		return err
	}
	if f.etcdClientCert, f.etcdClientKey, err = etcdClient.write(dir, "etcd-client"); err != nil {
		return err
	}

	prober, err := kubernetes.client("bucketoperator:prober", mastersGroup)
	if err != nil {
		return err
	}
	if f.adminCert, f.adminKey, err = prober.write(dir, "admin"); err != nil {
		return err
	}
	if f.adminClient, err = clientTLS(kubernetes.pool(), prober); err != nil {
		return err
	}
	f.etcdClient, err = clientTLS(etcd.pool(), etcdClient)
	return err
}

func clientTLS(servers *x509.CertPool, client keyPair) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(client.cert, client.key)
	if err != nil {
		return nil, fmt.Errorf("loading a client certificate: %w", err)
	}
	return &tls.Config{RootCAs: servers, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

func keepOrMakeKey(path string) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
