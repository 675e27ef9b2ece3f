package faults

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

// mutantEnv names the mutant that a program of mutants is to be.
const mutantEnv = "FAULTS_MUTANT"

// mutant is a bug that is planted into the product's sources to see whether the
// matrix finds it. Each package of the product lists its own, in mutantsFile.
type mutant struct {
	// Name says what is wrong.
	Name string `json:"name"`
	// Edits plant it.
	Edits []edit `json:"edits"`
	// Plans are those that are run against it. One of them has to fail.
	Plans []string `json:"plans"`

	table string // the file that lists it
}

// edit replaces text that occurs exactly once in a file of the product. In the
// new text mutated stands for a condition that is true for this mutant alone:
// all mutants are compiled into one program.
type edit struct {
	// File is relative to the folder of the package that lists the mutant.
	File string `json:"file"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// mutantsFile is where a package lists the bugs that are planted into it.
var mutantsFile = filepath.Join("testdata", "mutants.yaml")

// collectMutants reads the tables of all packages of the product, and of those
// that the tests run as if they were the product.
func collectMutants(t *testing.T, root string) []mutant {
	t.Helper()
	var all []mutant
	for _, folder := range []string{"internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, mutantsFile) {
				return err
			}
			listed, err := readMutants(path)
			all = append(all, listed...)
			return err
		})
		if err != nil {
			t.Fatalf("collecting the mutants: %v", err)
		}
	}
	if len(all) == 0 {
		t.Fatalf("there is no %s below %s", mutantsFile, root)
	}
	return all
}

func readMutants(path string) ([]mutant, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var listed []mutant
	if err := yaml.UnmarshalStrict(content, &listed); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range listed {
		listed[i].table = path
	}
	return listed, nil
}

// KillMutants plants bugs into the product, each on its own, and fails for every
// one that the matrix does not find. The mutants are compiled into one program
// of the tests of the calling package, by an overlay that leaves the sources
// alone, and run against references of the product as it is. The program's tests
// are to be called test, and to call Run with the same adapters.
func KillMutants(t *testing.T, test string, adapters ...*Adapter) {
	if os.Getenv(mutantEnv) != "" || *runPlan != "" {
		return // this is a mutant, or somebody looks at a plan
	}
	root, err := localcluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	all := collectMutants(t, root)
	program := buildMutants(t, all)
	chosen := shareOf(all)
	kubeconfig := writeKubeconfig(t)
	references := writeReferences(t, chosen, adapters)
	against := func(name string, patience time.Duration, plans []string) (output string, failed bool) {
		patterns := make([]string, len(plans))
		for i, plan := range plans {
			patterns[i] = regexp.QuoteMeta(plan)
		}
		command := exec.CommandContext(t.Context(), program, "-test.run=^"+test+"$", "-test.timeout=5m",
			"-faults.references="+references, "-faults.plan="+strings.Join(patterns, "|"), "-faults.patience="+patience.String())
		command.Env = append(os.Environ(), mutantEnv+"="+name, localcluster.TestKubeconfigEnv+"="+kubeconfig)
		out, err := command.CombinedOutput()
		return string(out), err != nil
	}
	t.Run("the program is sound without a mutation", func(t *testing.T) {
		t.Parallel()
		var plans []string
		for _, m := range chosen {
			plans = append(plans, m.Plans...)
		}
		slices.Sort(plans)
		if output, failed := against("none", *patienceFlag, slices.Compact(plans)); failed {
			t.Errorf("it fails:\n%s", output)
		}
	})
	for _, m := range chosen {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			output, failed := against(m.Name, mutantPatience, m.Plans)
			killers := killersIn(output)
			switch {
			case len(killers) > 0:
				t.Logf("%s: killed by %s", m.Name, strings.Join(killers, "; "))
			case failed:
				t.Errorf("it failed, but no oracle has said so:\n%s", output)
			default:
				t.Errorf("it survived %s", strings.Join(m.Plans, ", "))
			}
		})
	}
}

// mutantPatience is how long a state may take to come with a mutant: many do not
// let it come, and to take a slow machine for a mutant's death would hide little.
const mutantPatience = 8 * time.Second

// mutantShares is how many shares the table has. The seed says which one runs.
const mutantShares = 3

func shareOf(all []mutant) []mutant {
	if *runAll {
		return all
	}
	var chosen []mutant
	for i, m := range all {
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

// buildMutants compiles the tests of the package in the working directory with
// all mutants in them.
func buildMutants(t *testing.T, mutants []mutant) string {
	t.Helper()
	dir := t.TempDir()
	sources := map[string]string{}
	for _, m := range mutants {
		for _, e := range m.Edits {
			path := filepath.Join(filepath.Dir(m.table), "..", e.File)
			source, known := sources[path]
			if !known {
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatalf("mutant %q of %s: %v", m.Name, m.table, err)
				}
				source = string(content)
			}
			if n := strings.Count(source, e.Old); n != 1 {
				t.Errorf("mutant %q: %s holds the text that it changes %d times, not once: bring %s up to date:\n%s", m.Name, path, n, m.table, e.Old)
				continue
			}
			sources[path] = strings.Replace(source, e.Old, mutatedIn(e.New, m.Name), 1)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	helped := map[string]bool{}
	for path, source := range sources {
		folder := filepath.Dir(path)
		if !helped[folder] {
			helped[folder] = true
			sources[filepath.Join(folder, "zz_mutated.go")] = helper(packageClause.FindStringSubmatch(source)[1])
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

var packageClause = regexp.MustCompile(`(?m)^package (\w+)$`)

// helper is a file that the mutants of a package need.
func helper(name string) string {
	return fmt.Sprintf(`package %s

import (
	"context"
	"os"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

func mutated(name string) bool { return os.Getenv(%q) == name }

func tell(ctx context.Context, secret string) { logf.FromContext(ctx).Info("Opening", "key", secret) }

var _ = tell
`, name, mutantEnv)
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
func writeReferences(t *testing.T, chosen []mutant, adapters []*Adapter) string {
	t.Helper()
	spaces := &places{t: t}
	made := map[string]*Reference{}
	for _, a := range adapters {
		a = a.withDefaults()
		for _, s := range a.Scenarios {
			needed := slices.ContainsFunc(chosen, func(m mutant) bool {
				return slices.ContainsFunc(m.Plans, func(plan string) bool { return strings.HasPrefix(plan, s.Name+"/") })
			})
			if needed {
				made[s.Name] = referenceFor(t, spaces, a, s)
			}
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
