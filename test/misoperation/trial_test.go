package misoperation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

// trial is a bucket, with a configuration of its own, that mistakes are made in.
type trial struct {
	*arena
	// name is that of both objects.
	name string
	// inConfig tells in which of the two the mistakes are made.
	inConfig bool
	// id is the bucket's at the provider, once it was seen.
	id string
}

// objects are the two objects as they should be.
func (r *trial) objects() (bucket, config *unstructured.Unstructured) {
	return r.bucket(r.name, r.name), r.config(r.name)
}

// subject is the object that mistakes are made in, with the mistakes.
func (r *trial) subject(t *testing.T, mistakes ...mistake) *unstructured.Unstructured {
	t.Helper()
	bucket, config := r.objects()
	object := bucket
	if r.inConfig {
		object = config
	}
	for _, m := range mistakes {
		if err := m.in(object); err != nil {
			t.Fatalf("%s: %v", m, err)
		}
	}
	return object
}

// create creates both objects, one of them with the mistakes.
func (r *trial) create(t *testing.T, mistakes ...mistake) {
	t.Helper()
	bucket, config := r.objects()
	if r.inConfig {
		config = r.subject(t, mistakes...)
	} else {
		bucket = r.subject(t, mistakes...)
	}
	r.Create(t, config, bucket)
}

// change puts the mistakes, or none, into the subject, and returns what the
// bucket's status said of the provider before.
func (r *trial) change(t *testing.T, mistakes ...mistake) (before storagev1.ObservedProvider) {
	t.Helper()
	if b := r.Bucket(t, r.name); b != nil {
		before = b.Status.Provider
	}
	r.put(t, r.subject(t, mistakes...))
	return before
}

// putRight gives the subject back a good spec or, where the API server does not
// let a field be changed any more, replaces the object.
func (r *trial) putRight(t *testing.T) {
	t.Helper()
	live, good := r.subject(t), r.subject(t)
	testkit.Eventually(t, func(ctx context.Context) string {
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(good), live)
		if err == nil {
			live.Object["spec"] = good.DeepCopy().Object["spec"]
			err = r.Client.Update(ctx, live)
		}
		switch {
		case err == nil:
			return ""
		case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "cannot be changed"):
			return err.Error()
		}
		r.remove(t, live)
		r.id = ""
		r.Create(t, good)
		return ""
	})
}

// settles waits until both objects are in order, with the mistake in one of them.
func (r *trial) settles(t *testing.T, m mistake, before storagev1.ObservedProvider) {
	t.Helper()
	testkit.Eventually(t, func(context.Context) string {
		config, bucket := r.Config(t, r.name), r.Bucket(t, r.name)
		if _, why := judge(config, config.Status.Conditions, m); why != "" {
			return why
		}
		ready, why := judge(bucket, bucket.Status.Conditions, m)
		switch {
		case r.id != "" && bucket.Status.ID != r.id:
			return fmt.Sprintf("the bucket was %s and is now %q", r.id, bucket.Status.ID)
		case !ready:
			return why
		case r.inConfig && bucket.Status.Provider == before:
			return "the bucket is Ready, but was not compared since the change"
		}
		r.id = bucket.Status.ID
		return r.converged(bucket)
	})
}

// failures is how many more tries it takes to believe that one more writes nothing.
const failures = 3

// staysQuiet waits until the operator has tried again, where it does so by
// itself, and checks that it had nothing new to say.
func (r *trial) staysQuiet(t *testing.T) {
	t.Helper()
	before, tried := r.Bucket(t, r.name), r.failuresOf(r.name)
	c := meta.FindStatusCondition(before.Status.Conditions, "Ready")
	awaited := c.Reason == storagev1.ReasonProviderNotFound || c.Reason == storagev1.ReasonSecretNotFound // a watch will tell
	if c.Status != metav1.ConditionFalse || awaited || !meta.IsStatusConditionTrue(before.Status.Conditions, "Reconciling") {
		return
	}
	testkit.Eventually(t, func(context.Context) string {
		if n := r.failuresOf(r.name) - tried; n < failures {
			return fmt.Sprintf("%s, which is %s, was tried again %d times", r.name, c.Reason, n)
		}
		return ""
	})
	if after := r.Bucket(t, r.name); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the same trouble was written down again: %+v, then %+v", before.Status, after.Status)
	}
}

// recovers waits until the bucket is Ready, and is the one that it was.
func (r *trial) recovers(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func(context.Context) string {
		bucket, config := r.Bucket(t, r.name), r.Config(t, r.name)
		for _, object := range []interface {
			client.Object
			conditioned
		}{bucket, config} {
			c := meta.FindStatusCondition(object.GetConditions(), "Ready")
			if c == nil || c.ObservedGeneration != object.GetGeneration() || c.Status != "True" {
				return fmt.Sprintf("%T %s is not Ready: %+v", object, r.name, object.GetConditions())
			}
		}
		if r.id != "" && r.id != bucket.Status.ID {
			return fmt.Sprintf("the bucket was %s and is now %s", r.id, bucket.Status.ID)
		}
		r.id = bucket.Status.ID
		return r.converged(bucket)
	})
}

// end deletes both objects, and the bucket if it was to be kept.
func (r *trial) end(t *testing.T) {
	t.Helper()
	bucket, config := r.objects()
	b := r.Bucket(t, r.name)
	r.remove(t, bucket)
	r.endConfig(t, config, b)
}

func (r *trial) endConfig(t *testing.T, config *unstructured.Unstructured, b *storagev1.StorageBucket) {
	t.Helper()
	r.remove(t, config)
	there, err := r.Provider.Vanish(b.Status.ID)
	if err != nil {
		t.Fatal(err)
	}
	if kept := b.Spec.DeletionPolicy == storagev1.DeletionPolicyRetain && b.Status.ID != ""; there != kept {
		t.Errorf("after a deletion with policy %s, the bucket is there: %t", b.Spec.DeletionPolicy, there)
	}
}

// deletedWithMistake deletes the bucket while the mistake is there: either it
// goes, or a condition tells what keeps it and how to do without.
func (r *trial) deletedWithMistake(t *testing.T, m mistake) {
	t.Helper()
	bucket, config := r.objects()
	last := r.Bucket(t, r.name)
	if err := r.Client.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func(context.Context) string {
		b := r.Bucket(t, r.name)
		if b == nil {
			return ""
		}
		last = b
		blocked := meta.FindStatusCondition(b.Status.Conditions, "DeletionBlocked")
		if blocked == nil || !m.toldBy(blocked.Message) {
			return fmt.Sprintf("it stays, and nothing tells of %s: %+v", m, b.Status.Conditions)
		}
		return ""
	})
	if r.Bucket(t, r.name) != nil && r.inConfig {
		r.put(t, config)
	}
	testkit.Eventually(t, func(context.Context) string {
		if b := r.Bucket(t, r.name); b != nil {
			return fmt.Sprintf("it stays although the mistake was put right: %+v", b.Status.Conditions)
		}
		return ""
	})
	r.endConfig(t, config, last)
}

// conditioned is an object with conditions.
type conditioned interface {
	GetConditions() []metav1.Condition
}

// accepted sorts the mistakes by what the API server says to them, without
// storing anything: refusals are checked here and now. What comes out as a
// good object, and what comes out as another mistake does, is left out.
func accepted(t *testing.T, mistakes []mistake, attempt func(mistake) (*unstructured.Unstructured, error)) (found []mistake) {
	t.Helper()
	good, err := attempt(mistake{path: "metadata.annotations", what: "left as they are", value: removed})
	if err != nil {
		t.Fatalf("the good object was refused: %v", err)
	}
	seen := map[string]bool{specOf(t, good): true}
	for _, m := range mistakes {
		object, err := attempt(m)
		if err != nil {
			refusal(t, m, err)
			continue
		}
		if spec := specOf(t, object); !seen[spec] {
			seen[spec] = true
			found = append(found, m)
		}
	}
	return found
}

func specOf(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	text, err := json.Marshal(object.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
