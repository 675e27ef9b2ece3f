package observability_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"k8s.io/client-go/util/cert"
)

// Names of the files in a Secret of type kubernetes.io/tls.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// certificate is a certificate for loopback and its key, in a folder that is
// like a Secret that the kubelet has mounted: tls.crt is a link to
// ..data/tls.crt, and ..data is a link to the folder with the latest version.
type certificate struct {
	folder  string
	version int
}

func newCertificate(t *testing.T) *certificate {
	t.Helper()
	c := &certificate{folder: t.TempDir()}
	c.renew(t)
	for _, name := range []string{certificateFile, keyFile} {
		c.link(t, filepath.Join("..data", name), name)
	}
	return c
}

// file is the certificate, with the one of its issuer.
func (c *certificate) file() string { return filepath.Join(c.folder, certificateFile) }

// renew puts another certificate and key, of another issuer, in the place of
// the former ones, both at the same moment.
func (c *certificate) renew(t *testing.T) {
	t.Helper()
	chain, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(c.folder, "..data")
	former, err := os.Readlink(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	c.version++
	latest := "..version-" + strconv.Itoa(c.version)
	err = errors.Join(
		os.Mkdir(filepath.Join(c.folder, latest), 0o700),
		os.WriteFile(filepath.Join(c.folder, latest, certificateFile), chain, 0o600),
		os.WriteFile(filepath.Join(c.folder, latest, keyFile), key, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	c.link(t, latest, "..data-new")
	if err := os.Rename(filepath.Join(c.folder, "..data-new"), data); err != nil {
		t.Fatal(err)
	}
	if former != "" {
		if err := os.RemoveAll(filepath.Join(c.folder, former)); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *certificate) link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, filepath.Join(c.folder, name)); err != nil {
		t.Fatal(err)
	}
}
