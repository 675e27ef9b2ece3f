package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// authority signs certificates for 127.0.0.1.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	bundle      []byte
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	a := authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	a.certificate = sign(t, template, template, a.key, a.key)
	a.bundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func (a authority) server(t *testing.T) *tls.Certificate {
	t.Helper()
	key := newKey(t)
	certificate := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, a.certificate, key, a.key)
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// tlsServer serves TLS on loopback, with a certificate that may be changed.
func tlsServer(t *testing.T) (address string, certificate *atomic.Pointer[tls.Certificate]) {
	t.Helper()
	certificate = &atomic.Pointer[tls.Certificate]{}
	listener := tls.NewListener(listen(t), &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return certificate.Load(), nil },
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = io.Copy(io.Discard, conn)
			}()
		}
	}()
	return listener.Addr().String(), certificate
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// bundles are the ways in which a bundle gets into a folder, and is replaced there.
var bundles = map[string]func(t *testing.T, folder string) (put func(content []byte)){
	"written over": func(t *testing.T, folder string) func([]byte) {
		return func(content []byte) { write(t, filepath.Join(folder, "ca.crt"), content) }
	},
	"renamed": func(t *testing.T, folder string) func([]byte) {
		return func(content []byte) {
			write(t, filepath.Join(folder, ".new"), content)
			if err := os.Rename(filepath.Join(folder, ".new"), filepath.Join(folder, "ca.crt")); err != nil {
				t.Fatal(err)
			}
		}
	},
	// As the kubelet does with the volume of a ConfigMap.
	"swapped below a link": func(t *testing.T, folder string) func([]byte) {
		version := 0
		return func(content []byte) {
			version++
			data := "..v" + string(rune('0'+version))
			if err := os.Mkdir(filepath.Join(folder, data), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, data, "ca.crt"), content)
			if err := os.Symlink(data, filepath.Join(folder, "..next")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(folder, "..next"), filepath.Join(folder, "..data")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("..data/ca.crt", filepath.Join(folder, "ca.crt")); err != nil && !errors.Is(err, os.ErrExist) {
				t.Fatal(err)
			}
		}
	},
}

func TestABundleThatIsReplacedIsReadAnew(t *testing.T) {
	t.Parallel()
	for name, bundle := range bundles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, second := newAuthority(t, "first"), newAuthority(t, "second")
			folder := t.TempDir()
			put := bundle(t, folder)
			put(first.bundle)
			address, certificate := tlsServer(t)
			// The clock stands still, so that only a failed handshake has the files looked at.
			roots := NewRoots(testingclock.NewFakePassiveClock(epoch), nil, []string{folder})
			dialer := &Dialer{Trusted: true, Roots: roots}
			dial := func() error {
				conn, err := dialer.DialTLSContext(t.Context(), "tcp", address)
				if err == nil {
					_ = conn.Close()
				}
				return err
			}
			certificate.Store(first.server(t))
			if err := dial(); err != nil {
				t.Fatal(err)
			}
			certificate.Store(second.server(t))
			_, failed := errors.AsType[*HandshakeError](dial())
			if _, unknown := errors.AsType[x509.UnknownAuthorityError](dial()); !unknown || !failed {
				t.Fatal("a certificate of an unknown authority was taken")
			}
			put(second.bundle)
			if err := dial(); err != nil {
				t.Errorf("after the bundle was replaced: %v", err)
			}
			certificate.Store(first.server(t))
			if err := dial(); err == nil {
				t.Error("an authority that is trusted no more is")
			}
		})
	}
}

func TestRootsFollowTheirFilesWithoutAFailedHandshake(t *testing.T) {
	t.Parallel()
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	file := filepath.Join(t.TempDir(), "bundle")
	write(t, file, first.bundle)
	clock := testingclock.NewFakePassiveClock(epoch)
	roots := NewRoots(clock, []string{filepath.Join(t.TempDir(), "absent"), file}, nil)
	want := func(a authority, what string) {
		t.Helper()
		pool := x509.NewCertPool()
		pool.AddCert(a.certificate)
		if !roots.Pool().Equal(pool) {
			t.Errorf("%s the pool is another", what)
		}
	}
	want(first, "at first")
	kept := roots.Pool()
	clock.SetTime(epoch.Add(rootsInterval))
	if roots.Pool() != kept {
		t.Error("a new pool is made of files that have not changed")
	}
	write(t, file, second.bundle)
	want(first, "before the files are looked at again")
	clock.SetTime(epoch.Add(2 * rootsInterval))
	want(second, "afterwards")
}

func TestSystemRootsAreThoseOfTheEnvironment(t *testing.T) {
	a, b := newAuthority(t, "a"), newAuthority(t, "b")
	file, folder := filepath.Join(t.TempDir(), "bundle"), t.TempDir()
	write(t, file, a.bundle)
	write(t, filepath.Join(folder, "b.crt"), b.bundle)
	write(t, filepath.Join(folder, "readme"), []byte("not a certificate"))
	if err := os.Symlink("b.crt", filepath.Join(folder, "12345678.0")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	t.Setenv("SSL_CERT_DIR", folder)
	roots := SystemRoots(testingclock.NewFakePassiveClock(epoch))
	if roots == nil {
		t.Skip("the system keeps its authorities elsewhere than in files")
	}
	want := x509.NewCertPool()
	want.AddCert(a.certificate)
	want.AddCert(b.certificate)
	if !roots.Pool().Equal(want) {
		t.Error("the pool is another")
	}
}

// Whatever this machine trusts, the operator does.
func TestSystemRootsAreTheSystems(t *testing.T) {
	t.Parallel()
	roots := SystemRoots(testingclock.NewFakePassiveClock(epoch))
	system, err := x509.SystemCertPool()
	if roots == nil || err != nil {
		t.Skip("the system keeps its authorities elsewhere than in files")
	}
	if !roots.Pool().Equal(system) {
		t.Error("they are not what crypto/x509 finds")
	}
}

func TestWithoutRootsTheSystemsAreTaken(t *testing.T) {
	t.Parallel()
	var none *Roots
	none.Doubt()
	if none.Pool() != nil {
		t.Error("there is a pool")
	}
}
