package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"avalonhosting.example/bucketoperator/localcluster"
)

const (
	testVersion   = "v1.2.3-test"
	testReference = "registry.example.com/bucketoperator:v1.2.3-test"
)

// makeImage calls `make image` in a copy of the project's sources, and returns
// its folder bin.
func makeImage(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Fatalf("the project needs make: %v", err)
	}
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, name := range []string{"api", "cmd", "config", "hack", "internal", "localcluster"} {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Makefile", "go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "make", "image",
		"VERSION="+testVersion, "IMG="+testReference, "SOURCE_DATE_EPOCH=1700000000")
	command.Dir = folder
	// A make that calls these tests would hand its own flags down.
	command.Env = append(os.Environ(), "MAKEFLAGS=", "MFLAGS=", "MAKELEVEL=")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("make image: %v\n%s", err, output)
	}
	return filepath.Join(folder, "bin")
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestTwoFoldersGiveTheSameImage(t *testing.T) {
	t.Parallel()
	first, second := makeImage(t), makeImage(t)
	for _, file := range []string{"image/bucketoperator", "bucketoperator-image.tar", "bucketoperator.cdx.json"} {
		if !bytes.Equal(read(t, first, file), read(t, second, file)) {
			t.Errorf("%s differs between two builds of the same source", file)
		}
	}

	t.Run("which prints its version", func(t *testing.T) {
		output, err := exec.CommandContext(t.Context(), filepath.Join(first, "image", "bucketoperator"), "--version").Output()
		if err != nil || !strings.HasPrefix(string(output), "bucketoperator "+testVersion+" ") {
			t.Errorf("--version printed %q, %v", output, err)
		}
	})
	t.Run("which holds the program and what it needs", func(t *testing.T) {
		checkContents(t, first)
	})
	t.Run("whose bill of materials has every module", func(t *testing.T) {
		checkBOM(t, first)
	})
}

func checkContents(t *testing.T, bin string) {
	built, err := tarball.ImageFromPath(filepath.Join(bin, "bucketoperator-image.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", files)
	unpack.Stdin = mutate.Extract(built)
	if output, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpacking the image: %v\n%s", err, output)
	}
	if !bytes.Equal(read(t, files, "bucketoperator"), read(t, bin, "image", "bucketoperator")) {
		t.Error("/bucketoperator is not the program that was built")
	}
	if n := len(certificatesIn(t, read(t, files, certificatesPath))); n < 100 {
		t.Errorf("%s holds %d certificates, want those of all public authorities", certificatesPath, n)
	}

	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		Entrypoint: []string{"/bucketoperator"},
		User:       "65532:65532",
		WorkingDir: "/",
		Env:        []string{"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "bucketoperator",
			"org.opencontainers.image.description": "Buckets at a provider outside the cluster, as objects inside it",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     testVersion,
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("the image's configuration (-want +got):\n%s", diff)
	}
}

func certificatesIn(t *testing.T, file []byte) []*x509.Certificate {
	t.Helper()
	var certificates []*x509.Certificate
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		certificates = append(certificates, certificate)
	}
	return certificates
}

func checkBOM(t *testing.T, bin string) {
	output, err := exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(bin, "image", "bucketoperator")).Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(string(output), -1)
	if len(linked) < 20 {
		t.Fatalf("go version -m names %d modules only:\n%s", len(linked), output)
	}
	want := map[string]string{}
	for _, module := range linked {
		want[module[1]] = module[2]
	}

	var bom cdx.BOM
	if err := json.Unmarshal(read(t, bin, "bucketoperator.cdx.json"), &bom); err != nil {
		t.Fatal(err)
	}
	if got := bom.Metadata.Component; got.Name != "avalonhosting.example/bucketoperator" || got.Version != testVersion || bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("the bill is of %s %s at %s", got.Name, got.Version, bom.Metadata.Timestamp)
	}
	got := map[string]string{}
	others := map[string]bool{}
	for _, c := range *bom.Components {
		if c.Name == "std" || c.Type == cdx.ComponentTypeData {
			others[c.Name] = true
			continue
		}
		got[c.Name] = c.Version
		if c.Hashes == nil || !strings.HasPrefix(c.PackageURL, "pkg:golang/") {
			t.Errorf("%s has no hash, or no package URL: %q", c.Name, c.PackageURL)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("modules in the bill of materials, against those in the program (-program +bill):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"std": true, certificatesModule: true}, others); diff != "" {
		t.Errorf("what else is in the bill of materials (-want +got):\n%s", diff)
	}
}

func TestOnlyStaticProgramsForLinuxGoIn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	source := filepath.Join(folder, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "program"), source)
	build.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if _, err := readProgram(filepath.Join(folder, "program")); err == nil || !strings.Contains(err.Error(), "windows") {
		t.Errorf("got error %v, want one that says what the program is for", err)
	}
	if _, err := readProgram(source); err == nil || !strings.Contains(err.Error(), "main.go") {
		t.Errorf("got error %v, want one that names the file", err)
	}
}

// The Dockerfile and this program say the same, each in its language.
func TestTheDockerfileGivesTheSame(t *testing.T) {
	t.Parallel()
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	dockerfile := string(read(t, root, "Dockerfile"))
	for _, line := range []string{
		"COPY --from=build /src/bin/bucketoperator " + programPath,
		"WORKDIR /",
		"USER 65532:65532",
		`ENTRYPOINT ["` + programPath + `"]`,
		`org.opencontainers.image.title="bucketoperator"`,
		`org.opencontainers.image.description="Buckets at a provider outside the cluster, as objects inside it"`,
		`org.opencontainers.image.licenses="Apache-2.0"`,
		`org.opencontainers.image.version="${VERSION}"`,
	} {
		if !strings.Contains(dockerfile, line) {
			t.Errorf("the Dockerfile has no %s", line)
		}
	}
}
