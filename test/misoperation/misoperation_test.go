package misoperation_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

// minMistakes is how many mistakes the generator must find in a kind, so that a
// change of it does not quietly test nothing.
const minMistakes = 100

func TestMistakesAtCreation(t *testing.T) {
	for _, subject := range subjects {
		t.Run(subject.kind, func(t *testing.T) {
			t.Parallel()
			a, mistakes := newArena(t), mistakesIn(schemaOf(t, subject.resource).Properties["spec"])
			if t.Logf("%d mistakes", len(mistakes)); len(mistakes) < minMistakes {
				t.Errorf("fewer than %d mistakes were generated", minMistakes)
			}
			for i, m := range accepted(t, mistakes, func(m mistake) (*unstructured.Unstructured, error) {
				object := (&trial{arena: a, name: "draft", inConfig: subject.inConfig}).subject(t, m)
				return object, a.Client.Create(t.Context(), object, client.DryRunAll)
			}) {
				t.Run(m.String(), func(t *testing.T) {
					t.Parallel()
					r := &trial{arena: a, name: fmt.Sprintf("bucket-%d", i), inConfig: subject.inConfig}
					r.create(t, m)
					r.settles(t, m, storagev1.ObservedProvider{})
					r.staysQuiet(t)
					r.putRight(t)
					r.recovers(t)
					r.end(t)
				})
			}
		})
	}
}

func TestMistakesAtUpdate(t *testing.T) {
	for _, subject := range subjects {
		t.Run(subject.kind, func(t *testing.T) {
			t.Parallel()
			a := newArena(t)
			victim := &trial{arena: a, name: "victim", inConfig: subject.inConfig}
			victim.create(t)
			victim.recovers(t)
			found := accepted(t, mistakesIn(schemaOf(t, subject.resource).Properties["spec"]), func(m mistake) (*unstructured.Unstructured, error) {
				live := victim.subject(t)
				if err := a.Client.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
					return nil, err
				}
				live.Object["spec"] = victim.subject(t, m).Object["spec"]
				return live, a.Client.Update(t.Context(), live, client.DryRunAll)
			})
			victim.recovers(t)
			victim.end(t)
			for i, first := range found {
				second := found[(i+1)%len(found)]
				t.Run(first.String()+", then "+second.String(), func(t *testing.T) {
					t.Parallel()
					r := &trial{arena: a, name: fmt.Sprintf("bucket-%d", i), inConfig: subject.inConfig}
					r.create(t)
					r.recovers(t)
					r.settles(t, first, r.change(t, first))
					r.staysQuiet(t)
					r.settles(t, second, r.change(t, second))
					r.change(t)
					r.recovers(t)
					r.settles(t, first, r.change(t, first))
					r.deletedWithMistake(t, first)
				})
			}
		})
	}
}

// subjects are the kinds that mistakes are made in.
var subjects = []struct {
	kind, resource string
	inConfig       bool
}{
	{kind: "StorageBucket", resource: "storagebuckets"},
	{kind: "BucketProviderConfig", resource: "bucketproviderconfigs", inConfig: true},
}
