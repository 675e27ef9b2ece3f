package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// mutantEnv names the mutant that a program of mutants is to be.
const mutantEnv = "FAULTS_MUTANT"

// TestMutantsAreKilled plants bugs into the product, each on its own, and fails
// for every one that the matrix does not find. The mutants are compiled into one
// program of these tests, by an overlay that leaves the sources alone, and run
// against references of the product as it is.
func TestMutantsAreKilled(t *testing.T) {
	if os.Getenv(mutantEnv) != "" || *runPlan != "" {
		return // this is a mutant, or somebody looks at a plan
	}
	chosen := chosenMutants()
	program := buildMutants(t)
	kubeconfig := writeKubeconfig(t)
	references := writeReferences(t, chosen)
	against := func(name string, plans []string) (output string, failed bool) {
		patterns := make([]string, len(plans))
		for i, plan := range plans {
			patterns[i] = regexp.QuoteMeta(plan)
		}
		command := exec.CommandContext(t.Context(), program, "-test.run=^TestMatrix$", "-test.timeout=5m",
			"-faults.references="+references, "-faults.plan="+strings.Join(patterns, "|"), "-faults.patience=8s")
		command.Env = append(os.Environ(), mutantEnv+"="+name, localcluster.TestKubeconfigEnv+"="+kubeconfig)
		out, err := command.CombinedOutput()
		return string(out), err != nil
	}
	t.Run("the program is sound without a mutation", func(t *testing.T) {
		t.Parallel()
		var plans []string
		for _, m := range chosen {
			plans = append(plans, m.plans...)
		}
		slices.Sort(plans)
		if output, failed := against("none", slices.Compact(plans)); failed {
			t.Errorf("it fails:\n%s", output)
		}
	})
	for _, m := range chosen {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			output, failed := against(m.name, m.plans)
			killers := killersIn(output)
			switch {
			case len(killers) > 0:
				t.Logf("%s: killed by %s", m.name, strings.Join(killers, "; "))
			case failed:
				t.Errorf("it failed, but no oracle has said so:\n%s", output)
			default:
				t.Errorf("it survived %s", strings.Join(m.plans, ", "))
			}
		})
	}
}

// mutantShares is how many shares the table has. The seed says which one runs.
const mutantShares = 3

func chosenMutants() []mutant {
	if *runAll {
		return mutants
	}
	var chosen []mutant
	for i, m := range mutants {
		if uint(i)%mutantShares == *seed%mutantShares {
			chosen = append(chosen, m)
		}
	}
	return chosen
}

var killer = regexp.MustCompile(violationMark + `([^:]+):`)

// killersIn are the oracles that have found something.
func killersIn(output string) []string {
	var killers []string
	for _, match := range killer.FindAllStringSubmatch(output, -1) {
		killers = append(killers, match[1])
	}
	slices.Sort(killers)
	return slices.Compact(killers)
}

// buildMutants compiles these tests with all mutants in them.
func buildMutants(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, m := range mutants {
		for _, e := range m.edits {
			path := filepath.Join(root, e.file)
			source, known := sources[path]
			if !known {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				source = string(content)
			}
			if n := strings.Count(source, e.old); n != 1 {
				t.Fatalf("mutant %q: %s holds the text that it changes %d times, not once: bring mutants.go up to date:\n%s", m.name, e.file, n, e.old)
			}
			sources[path] = strings.Replace(source, e.old, mutatedIn(e.new, m.name), 1)
		}
	}
	helped := map[string]bool{}
	for path := range sources {
		folder := filepath.Dir(path)
		if !helped[folder] {
			helped[folder] = true
			sources[filepath.Join(folder, "zz_mutated.go")] = helper(folder)
		}
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, source := range sources {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", len(overlay.Replace)))
		write(t, file, []byte(source))
		overlay.Replace[path] = file
	}
	content, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "overlay.json"), content)
	program := filepath.Join(dir, "mutants.test")
	out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("compiling the mutants: %v\n%s", err, out)
	}
	return program
}

var standIn = regexp.MustCompile(`\bmutated\b`)

func mutatedIn(text, name string) string {
	return standIn.ReplaceAllLiteralString(text, fmt.Sprintf("mutated(%q)", name))
}

// helper is a file that the mutants of a folder need.
func helper(folder string) string {
	return fmt.Sprintf(`package %s

import (
	"context"
	"os"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

func mutated(name string) bool { return os.Getenv(%q) == name }

func tell(ctx context.Context, secret string) { logf.FromContext(ctx).Info("Opening", "key", secret) }

var _ = tell
`, filepath.Base(folder), mutantEnv)
}

// writeKubeconfig lets a mutant use the API server of these tests.
func writeKubeconfig(t *testing.T) string {
	t.Helper()
	config := testplane.Config()
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["tests"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	kubeconfig.AuthInfos["tests"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	kubeconfig.Contexts["tests"] = &clientcmdapi.Context{Cluster: "tests", AuthInfo: "tests"}
	kubeconfig.CurrentContext = "tests"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeReferences makes the references that the mutants' plans need.
func writeReferences(t *testing.T, chosen []mutant) string {
	t.Helper()
	spaces := &places{t: t}
	made := map[string]*Reference{}
	for _, s := range Scenarios() {
		needed := slices.ContainsFunc(chosen, func(m mutant) bool {
			return slices.ContainsFunc(m.plans, func(plan string) bool { return strings.HasPrefix(plan, s.Name+"/") })
		})
		if needed {
			made[s.Name] = referenceFor(t, spaces, s)
		}
	}
	content, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "references.json")
	write(t, path, content)
	return path
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
