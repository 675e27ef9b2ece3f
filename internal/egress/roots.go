package egress

import (
	"crypto/sha256"
	"crypto/x509"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// rootsInterval is for how long Roots take the files to be unchanged. A server
// that changes its authority together with the bundle is refused for no longer,
// and Doubt makes even that one call.
const rootsInterval = 5 * time.Second

// Where Go looks for the system's certificates on Linux, see crypto/x509: the first
// of the files that can be read, and every file in the folders.
var (
	systemFiles = []string{
		"/etc/ssl/certs/ca-certificates.crt",                // Debian, and the image
		"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora
		"/etc/ssl/ca-bundle.pem",                            // openSUSE
		"/etc/pki/tls/cacert.pem",                           // OpenELEC
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL
		"/etc/ssl/cert.pem",                                 // Alpine
	}
	systemFolders = []string{"/etc/ssl/certs", "/etc/pki/tls/certs"}
)

// Roots are the authorities that may sign a server's certificate. crypto/x509
// reads the system's once in the life of a process; these are read anew when their
// files have changed, in whatever way: written over, renamed, or swapped below a
// symbolic link, as a ConfigMap's are. They are looked at when a connection is
// made, and compared by content, so there is nothing to watch, and nothing to lose
// sight of. A nil *Roots stands for what crypto/x509 does.
type Roots struct {
	files, folders []string
	clock          clock.PassiveClock

	mu     sync.Mutex
	pool   *x509.CertPool
	digest [sha256.Size]byte
	lookAt time.Time
}

// NewRoots are the certificates in the first of files that can be read, and in all
// files of folders. One that cannot be read, or holds none, counts as none.
func NewRoots(clock clock.PassiveClock, files, folders []string) *Roots {
	return &Roots{files: files, folders: folders, clock: clock}
}

// SystemRoots are the system's authorities, in the places where crypto/x509 looks
// for them, which SSL_CERT_FILE and SSL_CERT_DIR change. Elsewhere than on Linux
// they are nil, as there they are not in files.
func SystemRoots(clock clock.PassiveClock) *Roots {
	if runtime.GOOS != "linux" {
		return nil
	}
	files, folders := systemFiles, systemFolders
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		files = []string{file}
	}
	if list := os.Getenv("SSL_CERT_DIR"); list != "" {
		folders = filepath.SplitList(list)
	}
	return NewRoots(clock, files, folders)
}

// FixedRoots are those of a pool.
func FixedRoots(pool *x509.CertPool) *Roots { return &Roots{pool: pool} }

// Pool is the authorities as they are now, for one connection.
func (r *Roots) Pool() *x509.CertPool {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clock == nil {
		return r.pool
	}
	if now := r.clock.Now(); r.pool == nil || !now.Before(r.lookAt) {
		r.lookAt = now.Add(rootsInterval)
		r.read()
	}
	return r.pool
}

// Doubt has the files looked at for the next connection, whenever that is: a
// server's authority was not among them.
func (r *Roots) Doubt() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lookAt = time.Time{}
}

// read makes a new pool if what is in the files has changed.
func (r *Roots) read() {
	var bundles [][]byte
	for _, file := range r.files {
		if bundle, err := os.ReadFile(file); err == nil {
			bundles = append(bundles, bundle)
			break
		}
	}
	for _, folder := range r.folders {
		bundles = append(bundles, filesIn(folder)...)
	}
	hash := sha256.New()
	for _, bundle := range bundles {
		of := sha256.Sum256(bundle)
		hash.Write(of[:])
	}
	digest := [sha256.Size]byte(hash.Sum(nil))
	if r.pool != nil && digest == r.digest {
		return
	}
	r.pool, r.digest = x509.NewCertPool(), digest
	for _, bundle := range bundles {
		r.pool.AppendCertsFromPEM(bundle)
	}
}

// filesIn are the contents of the files in a folder. As crypto/x509 does, it
// leaves out links to others in the same folder, which are names by hash.
func filesIn(folder string) [][]byte {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var contents [][]byte
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if entry.Type()&os.ModeSymlink != 0 {
			if target, err := os.Readlink(path); err == nil && !strings.Contains(target, "/") {
				continue
			}
		}
		if content, err := os.ReadFile(path); err == nil {
			contents = append(contents, content)
		}
	}
	return contents
}
