package faults

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

var (
	runAll       = flag.Bool("faults.all", false, "run all plans, not a share of them")
	runPlan      = flag.String("faults.plan", "", "run only the plans whose whole name this regular expression, or text, matches")
	references   = flag.String("faults.references", "", "take the references from this file")
	share        = flag.Int("faults.share", 20, "run one of this many plans")
	seed         = flag.Uint("faults.seed", 0, "which share to run; by default it follows from the commit that is checked out")
	patienceFlag = flag.Duration("faults.patience", patience, "how long a state may take to come")
	parallel     = flag.Int("faults.parallel", 8, "how many runs are under way at a time")
)

// again is the command that chooses the same plans and mutants.
var again string

// command is how the package that is being tested is tested.
func command() string {
	here, err := os.Getwd()
	if err != nil {
		return "go test"
	}
	root, err := localcluster.ModuleRoot()
	if err != nil {
		return "go test"
	}
	folder, err := filepath.Rel(root, here)
	if err != nil {
		return "go test"
	}
	return "go test ./" + filepath.ToSlash(folder)
}

// Main runs the tests of a package that calls Run or KillMutants: its TestMain. The
// cluster has the kinds of the tests' own too, each of which has a folder in the
// package's folder kinds, with its CRD below crd.
func Main(m *testing.M) {
	flag.Parse()
	patience = *patienceFlag
	if err := flag.Set("test.parallel", fmt.Sprint(*parallel)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	seedFrom := "as asked for"
	if *seed == 0 {
		*seed, seedFrom = seedOfCommit(context.Background())
	}
	again = fmt.Sprintf("%s -faults.seed=%d -faults.share=%d", command(), *seed, *share)
	if flag.Lookup("test.list").Value.String() == "" {
		fmt.Fprintf(os.Stderr, "faults: %s; the same again: %s\n", seedFrom, again)
	}
	crds, _ := filepath.Glob(filepath.Join("kinds", "*", "crd")) // the pattern is right
	testplane.Main(m, testplane.CRDs(crds...))
}

// Run runs the plans of all scenarios: a share of them, unless all are asked for.
func Run(t *testing.T, adapters ...*Adapter) {
	spaces := &places{t: t}
	tally := &tally{total: map[string]int{}, run: map[string]int{}}
	t.Logf("the same plans again: %s", again)
	t.Cleanup(func() { tally.print(t) })
	if *runAll {
		t.Cleanup(tally.tellProgress(os.Stderr))
	}
	for _, a := range adapters {
		a = a.withDefaults()
		for _, s := range a.Scenarios {
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				runScenario(t, spaces, tally, a, s)
			})
		}
	}
}

func runScenario(t *testing.T, spaces *places, tally *tally, a *Adapter, s Scenario) {
	reference := referenceFor(t, spaces, a, s)
	if reference == nil {
		return // not among those that were asked for
	}
	for _, plan := range plans(a, s, reference) {
		chosen := isChosen(a, plan)
		tally.count(plan, chosen)
		if !chosen {
			continue
		}
		t.Run(plan.Name(), func(t *testing.T) {
			t.Parallel()
			namespace := spaces.take()
			r := execute(t, namespace, a, s, plan, reference)
			r.report()
			tally.ended(t.Failed(), r.gate.hasStruckTwice())
			if !t.Failed() {
				spaces.put(namespace)
			}
		})
	}
}

// made are the references of this process.
var made struct {
	mu         sync.Mutex
	references map[string]*Reference
}

// referenceFor is the reference of a scenario: read from a file, made before, or
// made now. It is nil when there is a file which does not have it.
func referenceFor(t *testing.T, spaces *places, a *Adapter, s Scenario) *Reference {
	t.Helper()
	if *references != "" {
		content, err := os.ReadFile(*references)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]*Reference{}
		if err := json.Unmarshal(content, &all); err != nil {
			t.Fatal(err)
		}
		return all[s.Name]
	}
	made.mu.Lock()
	known := made.references[s.Name]
	made.mu.Unlock()
	if known != nil {
		return known
	}
	reference := makeReference(t, spaces, a, s)
	made.mu.Lock()
	defer made.mu.Unlock()
	if made.references == nil {
		made.references = map[string]*Reference{}
	}
	made.references[s.Name] = reference
	return reference
}

// makeReference runs a scenario without faults three times and fails when two
// runs differ: then something in the operator is left to chance.
func makeReference(t *testing.T, spaces *places, a *Adapter, s Scenario) *Reference {
	references := make([]*Reference, 3)
	t.Run("reference", func(t *testing.T) {
		for i := range references {
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				t.Parallel()
				namespace := spaces.take()
				r := execute(t, namespace, a, s, Plan{Scenario: s.Name, Fault: None}, nil)
				r.report()
				references[i] = referenceOf(a.Subject, r.gate.trace(), r.snapshots, r.frames)
				if !t.Failed() {
					spaces.put(namespace)
				}
			})
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	for _, other := range references[1:] {
		if diff := cmp.Diff(references[0].sequences(), other.sequences()); diff != "" && !s.Racing {
			t.Fatalf("two runs without faults differ:\n%s", diff)
		}
		for i := range references[0].Snapshots {
			if diff := difference(references[0].Snapshots[i], other.Snapshots[i]); diff != "" {
				t.Fatalf("two runs without faults end up in different states after act %q:\n%s", s.Acts[i].Name, diff)
			}
		}
	}
	for _, other := range references[1:] {
		references[0].common(other)
	}
	return references[0]
}

// isChosen tells whether a plan is to run now.
func isChosen(a *Adapter, plan Plan) bool {
	name := plan.Name()
	switch {
	case *runPlan != "":
		if name == *runPlan {
			return true
		}
		pattern, err := regexp.Compile("^(" + *runPlan + ")$")
		return err == nil && pattern.MatchString(name)
	case *runAll, plan.faultless(), plan.Then == "" && a.Core != nil && a.Core.MatchString(name):
		return true
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name))
	return uint(hash.Sum32())%uint(*share) == *seed%uint(*share)
}

// tally counts plans by what goes wrong in them.
type tally struct {
	mu           sync.Mutex
	total, run   map[string]int
	done, failed int
	twice        int // runs in which both faults of a pair have happened
}

func (c *tally) count(plan Plan, chosen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total[plan.Kind()]++
	if chosen {
		c.run[plan.Kind()]++
	}
}

func (c *tally) print(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	run, total := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(c.total)) {
		t.Logf("%4d of %4d plans: %s", c.run[kind], c.total[kind], kind)
		run += c.run[kind]
		total += c.total[kind]
	}
	t.Logf("%4d of %4d plans in all; in %d runs a second fault has happened in the recovery from the first", run, total, c.twice)
}

func (c *tally) ended(failed, twice bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	if twice {
		c.twice++
	}
	if failed {
		c.failed++
	}
}

// tellProgress writes, each minute until stop is called, how many plans were run.
func (c *tally) tellProgress(w io.Writer) (stop func()) {
	ticker, over := time.NewTicker(time.Minute), make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			c.mu.Lock()
			run := 0
			for _, n := range c.run {
				run += n
			}
			fmt.Fprintf(w, "faults: %d of %d plans so far, %d failed\n", c.done, run, c.failed)
			c.mu.Unlock()
		}
	}()
	return sync.OnceFunc(func() { close(over) })
}
