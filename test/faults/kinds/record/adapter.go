package record

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
	"avalonhosting.example/bucketoperator/internal/operator"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/test/faults"
	recordv1 "avalonhosting.example/bucketoperator/test/faults/kinds/record/api/v1"
)

const (
	port        = faults.Port("records")
	records     = "records"
	deployments = "deployments"
	noteName    = "note"
)

var deployment = faults.Object{Resource: deployments, Name: noteName}

// Adapter is what the fault matrix has to know of Records, in an operator that is
// made of the definitions.
func Adapter(definitions []operator.Definition) *faults.Adapter {
	return &faults.Adapter{
		Scheme: operator.NewScheme(definitions),
		Scenarios: []faults.Scenario{{
			Name: "record", Acts: []faults.Act{noteMade, rewritten, labelled, scaled, undeployed, spoilt, noteDeleted},
		}},
		Interludes: []faults.Interlude{
			{Name: "delete", MakesSense: always, Do: func(r *faults.Execution) {
				r.Remove(noteName, &recordv1.Record{})
				r.Alter(gone)
			}},
			{Name: "recreate", MakesSense: always, Do: func(r *faults.Execution) {
				r.Remove(noteName, &recordv1.Record{})
				r.Alter(recreated())
			}},
			{Name: "damage", MakesSense: always, Do: func(r *faults.Execution) {
				if note := noteOf(r); note != nil && note.DeletionTimestamp.IsZero() {
					undeployed.Do(r)
				}
			}},
		},
		Resources: []faults.Resource{
			{Name: records, Kind: "Record", Reconciled: true, List: func() client.ObjectList { return &recordv1.RecordList{} }},
			{Name: deployments, Kind: "Deployment", List: func() client.ObjectList { return &appsv1.DeploymentList{} }},
		},
		Subject:      faults.Object{Resource: records, Name: noteName},
		Finalizer:    recordv1.RecordFinalizer,
		Children:     []faults.Object{deployment},
		FieldManager: "bucketoperator",

		MarkOf:  func(m faults.Metadata) string { return m.Annotations[recordv1.KeyAnnotation] },
		OwnerOf: func(key string) string { return key },
		IDOf:    func(o client.Object) string { return o.(*recordv1.Record).Status.Key },
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
			relay, err := faults.NewRelay(r.T.Context(), protocol, server.listener.Addr().String())
			if err != nil {
				r.T.Fatal(err)
			}
			return &world{server: server, relay: relay, run: r, definitions: definitions}
		},
		Recreate: func(r *faults.Execution) {
			r.Remove(noteName, &recordv1.Record{})
			r.Await(recreated())
		},
		Compares: func(r *faults.Execution) bool { return noteOf(r) != nil },
		Usable: func(r *faults.Execution, o client.Object) []string {
			record := o.(*recordv1.Record)
			if text := worldOf(r).text(string(record.UID)); text != record.Spec.Text {
				return []string{fmt.Sprintf("the server keeps %q", text)}
			}
			return nil
		},
		Mask: mask,
	}
}

// protocol tells where requests and answers end, and what they are about.
var protocol = faults.Protocol{
	Port: port,
	Request: func(sent []byte) (int, faults.Call) {
		length := bytes.IndexByte(sent, '\n') + 1
		words := append(strings.Fields(string(sent[:length])), "", "")
		return length, faults.Call{
			Effect: faults.Effect{Verb: words[0], Kind: records, Key: "{key}"},
			Read:   words[0] == "GET", Mark: words[1],
		}
	},
	Answer: func(got []byte) (length int, refused bool) {
		length = bytes.IndexByte(got, '\n') + 1
		answer := strings.TrimSpace(string(got[:length]))
		return length, answer == answerOld || answer == answerGone
	},
}

// mask takes out of a Deployment the digest of what was applied, which the uid of
// its owner is part of.
func mask(resource string, fields map[string]any) {
	metadata, _ := fields["metadata"].(map[string]any)
	if annotations, ok := metadata["annotations"].(map[string]any); ok && resource == deployments {
		delete(annotations, "bucketoperator.avalonhosting.example/applied-by-bucketoperator")
	}
}

// world is the outside of a run: a server, and the relay to it.
type world struct {
	*server
	relay       *faults.Relay
	run         *faults.Execution
	definitions []operator.Definition
}

// Start implements faults.Outside.
func (w *world) Start(t testing.TB, life *faults.Life) faults.Operator {
	life.TCP(w.relay)
	place := &testkit.World{Namespace: w.run.Namespace, Client: w.run.Client}
	return place.Start(t, testkit.Settings{
		Definitions: w.definitions, Groups: []string{Definition.Name},
		Client: life.Config(), WrapAPI: life.API, Log: life.Log,
		Backoff: operator.Bounds(life.Backoff), Poll: operator.Bounds(life.Poll),
		Resync: life.Resync, CallTimeout: life.CallTimeout,
	})
}

// Inventory implements faults.Outside.
func (w *world) Inventory() []faults.Item {
	w.mu.Lock()
	defer w.mu.Unlock()
	var items []faults.Item
	for _, key := range slices.Sorted(maps.Keys(w.records)) {
		items = append(items, faults.Item{ID: key, Mark: key, State: key + ": " + w.records[key].Text})
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
	pairs := []string{w.relay.Address(), "SERVER"}
	for i, key := range w.made {
		pairs = append(pairs, key, fmt.Sprintf("record-no-%d", i+1))
	}
	return pairs
}

// Close implements faults.Outside.
func (w *world) Close() {
	w.relay.Close()
	w.close()
}

func worldOf(r *faults.Execution) *world { return r.Outside.(*world) }

func noteOf(r *faults.Execution) *recordv1.Record {
	return faults.Of[*recordv1.Record](r, records, noteName)
}

func always(faults.Scenario, int) bool { return true }

var noteMade = faults.Act{Name: "make the note", Do: makeNote, Until: kept}

func makeNote(r *faults.Execution) {
	r.Create(&recordv1.Record{
		ObjectMeta: metav1.ObjectMeta{Name: noteName},
		Spec:       recordv1.RecordSpec{Server: worldOf(r).relay.Address(), Text: "first"},
	})
}

// kept: the text is at the server, and the Deployment as it has to be.
func kept(r *faults.Execution) string {
	note, live := noteOf(r), faults.Of[*appsv1.Deployment](r, deployments, noteName)
	switch {
	case note == nil:
		return "no note"
	case note.Status.ObservedGeneration != note.Generation || !meta.IsStatusConditionTrue(note.Status.Conditions, "Ready"):
		return "the note is not ready"
	case worldOf(r).text(string(note.UID)) != note.Spec.Text:
		return "the record is not as it should be"
	case live == nil || *live.Spec.Replicas != 0 || !metav1.IsControlledBy(live, note) ||
		note.Spec.InheritedMetadata != nil && live.Labels["team"] != "blue":
		return "the Deployment is not as it should be"
	}
	return ""
}

var rewritten = faults.Act{
	Name: "change the text",
	Do: func(r *faults.Execution) {
		faults.Change(r, noteName, &recordv1.Record{}, func(n *recordv1.Record) { n.Spec.Text = "second one" })
	},
	Until: kept,
}

var labelled = faults.Act{
	Name: "have the Deployment labelled",
	Do: func(r *faults.Execution) {
		faults.Change(r, noteName, &recordv1.Record{}, func(n *recordv1.Record) {
			n.Spec.InheritedMetadata = &apimeta.InheritedMetadata{Labels: map[string]apimeta.LabelValue{"team": "blue"}}
		})
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
	Name: "delete the note", Do: func(r *faults.Execution) { r.Remove(noteName, &recordv1.Record{}) },
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
		for _, effect := range []string{"records PUT records/{key}", "records DEL records/{key}"} {
			r.Allow(effect)
		}
		makeNote(r)
		return "just made"
	}
}
