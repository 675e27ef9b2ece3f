package record

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/test/faults"
)

const (
	port        = faults.Port("records")
	notes       = "configmaps"
	deployments = "deployments"
	noteName    = "note"
)

var (
	scheme     = clientgoscheme.Scheme
	noteLabels = map[string]string{"faults.example/note": "true"}
	noteObject = faults.Object{Resource: notes, Name: noteName}
	deployment = faults.Object{Resource: deployments, Name: noteName}
)

// Adapter is what the fault matrix has to know.
func Adapter() *faults.Adapter {
	return &faults.Adapter{
		Scheme: scheme,
		Scenarios: []faults.Scenario{{
			Name: "record", Acts: []faults.Act{noteMade, rewritten, scaled, undeployed, spoilt, noteDeleted},
		}},
		Interludes: []faults.Interlude{
			{Name: "delete", MakesSense: always, Do: func(r *faults.Execution) {
				r.Remove(noteName, &corev1.ConfigMap{})
				r.Alter(gone)
			}},
			{Name: "recreate", MakesSense: always, Do: func(r *faults.Execution) {
				r.Remove(noteName, &corev1.ConfigMap{})
				r.Alter(recreated())
			}},
			{Name: "damage", MakesSense: always, Do: func(r *faults.Execution) {
				if note := noteOf(r); note != nil && note.DeletionTimestamp.IsZero() {
					undeployed.Do(r)
					r.Allow("POST " + deployment.String())
				}
			}},
		},
		Resources: []faults.Resource{
			{Name: notes, Kind: "ConfigMap", Reconciled: true, List: func() client.ObjectList { return &corev1.ConfigMapList{} }, Labels: noteLabels},
			{Name: deployments, Kind: "Deployment", List: func() client.ObjectList { return &appsv1.DeploymentList{} }},
		},
		Subject:      noteObject,
		Finalizer:    finalizer,
		Children:     []faults.Object{deployment},
		FieldManager: fieldManager,

		MarkOf:  func(m faults.Metadata) string { return m.Annotations[keyAnnotation] },
		OwnerOf: func(key string) string { return key },
		IDOf: func(o client.Object) string {
			if _, kept := o.GetAnnotations()[keptAnnotation]; kept {
				return o.GetAnnotations()[keyAnnotation]
			}
			return ""
		},
		Meaning: func(e faults.Event) faults.Meaning {
			return faults.Meaning{
				Creates: e.Effect.Verb == "PUT", Deletes: e.Effect.Verb == "DEL", Mark: e.Mark, ID: e.Mark,
				Gone: string(bytes.TrimSpace(e.Response)) == answerNone,
			}
		},

		Open: func(r *faults.Execution) faults.Outside {
			server, err := newServer(r.T.Context())
			if err != nil {
				r.T.Fatalf("starting the server of records: %v", err)
			}
			return &world{server: server, run: r}
		},
		Recreate: func(r *faults.Execution) {
			r.Remove(noteName, &corev1.ConfigMap{})
			r.Await(recreated())
		},
		Compares: func(r *faults.Execution) bool { return noteOf(r) != nil },
		Usable:   func(*faults.Execution, client.Object) []string { return nil },
		Mask:     func(string, map[string]any) {},
	}
}

// protocol tells where requests and answers end, and what they are about.
var protocol = faults.Protocol{
	Port: port,
	Request: func(sent []byte) (int, faults.Call) {
		length := bytes.IndexByte(sent, '\n') + 1
		words := append(strings.Fields(string(sent[:length])), "", "")
		return length, faults.Call{
			Effect: faults.Effect{Verb: words[0], Kind: "records", Key: "{key}"},
			Read:   words[0] == "GET", Mark: words[1],
		}
	},
	Answer: func(got []byte) (length int, refused bool) {
		length = bytes.IndexByte(got, '\n') + 1
		answer := strings.TrimSpace(string(got[:length]))
		return length, answer == answerOld || answer == answerGone
	},
}

// world is the outside of a run: a server.
type world struct {
	*server
	run *faults.Execution
}

// Start implements faults.Outside.
func (w *world) Start(t testing.TB, life *faults.Life) faults.Operator {
	address, err := life.TCP(t.Context(), protocol, w.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return start(t, life, w.run.Namespace, address)
}

// Inventory implements faults.Outside.
func (w *world) Inventory() []faults.Item {
	w.mu.Lock()
	defer w.mu.Unlock()
	var items []faults.Item
	for _, key := range slices.Sorted(maps.Keys(w.records)) {
		items = append(items, faults.Item{ID: key, Mark: key, State: key + ": " + w.records[key].text})
	}
	return items
}

// Tally implements faults.Outside.
func (w *world) Tally() faults.Tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	tally := faults.Tally{Arrived: map[string]int{}, Done: map[string]int{}}
	for verb, n := range w.arrived {
		tally.Arrived[string(port)+" "+verb] = n
	}
	for verb, n := range w.done {
		tally.Done[string(port)+" "+verb+" records/{key}"] = n
	}
	return tally
}

// Masks implements faults.Outside.
func (w *world) Masks() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var pairs []string
	for i, key := range w.made {
		pairs = append(pairs, key, fmt.Sprintf("record-no-%d", i+1))
	}
	return pairs
}

// Close implements faults.Outside.
func (w *world) Close() { w.close() }

func worldOf(r *faults.Execution) *world { return r.Outside.(*world) }

func noteOf(r *faults.Execution) *corev1.ConfigMap {
	return faults.Of[*corev1.ConfigMap](r, notes, noteName)
}

func always(faults.Scenario, int) bool { return true }

var noteMade = faults.Act{Name: "make the note", Do: makeNote, Until: kept}

func makeNote(r *faults.Execution) {
	r.Create(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: noteName, Labels: noteLabels}, Data: map[string]string{"text": "first"},
	})
}

// kept: the text is at the server, and the Deployment as it has to be.
func kept(r *faults.Execution) string {
	note, live := noteOf(r), faults.Of[*appsv1.Deployment](r, deployments, noteName)
	switch {
	case note == nil:
		return "no note"
	case note.Annotations[keptAnnotation] != note.Data["text"]:
		return "the note is not said to be kept"
	case worldOf(r).text(string(note.UID)) != note.Data["text"]:
		return "the record is not as it should be"
	case live == nil || *live.Spec.Replicas != 0 || !metav1.IsControlledBy(live, note):
		return "the Deployment is not as it should be"
	}
	return ""
}

var rewritten = faults.Act{
	Name: "change the text",
	Do: func(r *faults.Execution) {
		faults.Change(r, noteName, &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["text"] = "second one" })
	},
	Until: kept,
}

var scaled = faults.Act{
	Name: "scale the Deployment",
	Do: func(r *faults.Execution) {
		faults.Change(r, noteName, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
	},
	Until: kept,
}

var undeployed = faults.Act{
	Name:  "delete the Deployment",
	Do:    func(r *faults.Execution) { r.Remove(noteName, &appsv1.Deployment{}) },
	Until: kept,
}

var spoilt = faults.Act{
	Name: "somebody spoils the record",
	Do: func(r *faults.Execution) {
		worldOf(r).spoil(string(noteOf(r).UID))
		r.RestartComparing()
	},
	Until:   kept,
	Clocked: true,
}

var noteDeleted = faults.Act{
	Name: "delete the note", Do: func(r *faults.Execution) { r.Remove(noteName, &corev1.ConfigMap{}) },
	Until: gone, Teardown: true,
}

func gone(r *faults.Execution) string {
	if noteOf(r) != nil {
		return "the note is still there"
	}
	if r.Get(deployments, noteName) != nil {
		return "the Deployment was not collected"
	}
	return ""
}

// recreated waits until the note is gone, makes it again and waits until it is kept.
func recreated() func(*faults.Execution) string {
	again := false
	return func(r *faults.Execution) string {
		if again {
			return kept(r)
		}
		if why := gone(r); why != "" {
			return why
		}
		again = true
		for _, effect := range []string{"records PUT records/{key}", "records DEL records/{key}", "POST " + deployment.String()} {
			r.Allow(effect)
		}
		makeNote(r)
		return "just made"
	}
}
