package engine

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a cache holds of an object's metadata, whatever somebody has put into it.
// Each bound is far above what the operator itself writes.
const (
	maxLabels      = 32
	maxAnnotations = 16
	maxValue       = 256 // bytes of an annotation; of a longer one the digest is held
)

// Compact is a transform for the caches of a kind's objects: it drops the
// metadata that nobody reads, and bounds the rest, so that the memory of the
// operator follows from how many objects there are and not from what somebody
// writes into them.
func (t Traits) Compact(in any) (any, error) {
	if object, ok := in.(client.Object); ok {
		CompactMetadata(object, append(slices.Clone(t.Annotations), t.Triggers...)...)
		object.SetFinalizers(compactFinalizers(object.GetFinalizers(), t.Finalizer))
	}
	return in, nil
}

// CompactMetadata drops from the metadata of an object in a cache the managed
// fields and all owners but the controller, and bounds labels and annotations; keep are
// annotations that stay in any case.
func CompactMetadata(object client.Object, keep ...string) {
	object.SetManagedFields(nil)
	object.SetGenerateName("")
	object.SetSelfLink("")
	object.SetOwnerReferences(compactOwner(object))
	object.SetLabels(bounded(object.GetLabels(), maxLabels, Label))
	annotations := bounded(object.GetAnnotations(), maxAnnotations, keep...)
	for key, value := range annotations {
		annotations[key] = CompactValue(value)
	}
	object.SetAnnotations(annotations)
}

// compactOwner is the reference to an object's controller.
func compactOwner(object client.Object) []metav1.OwnerReference {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return nil
	}
	owner.APIVersion, owner.Kind, owner.Name = CompactValue(owner.APIVersion), CompactValue(owner.Kind), CompactValue(owner.Name)
	owner.UID = types.UID(CompactValue(string(owner.UID)))
	return []metav1.OwnerReference{*owner}
}

// compactFinalizers keeps the operator's own and one of the others': that there is
// one tells the writer that it has to ask for all.
func compactFinalizers(finalizers []string, own string) []string {
	var kept []string
	foreign := false
	for _, f := range finalizers {
		if f == own || !foreign {
			kept = append(kept, f)
		}
		foreign = foreign || f != own
	}
	return kept
}

// CompactValue is a value as a cache holds it: itself, or its digest when it is long.
func CompactValue(value string) string {
	if len(value) <= maxValue {
		return value
	}
	return digestPrefix + hex.EncodeToString(sum([]byte(value)))
}

// digestKey makes digests unknown outside this process: nobody can write one
// where the value should stand.
var digestKey = []byte(rand.Text())

const digestPrefix = "hmac-sha256:"

// Digest is what a cache holds in place of a value. It differs from process to
// process. What looks like a digest is its own: client-go transforms what it has
// listed twice.
func Digest(value []byte) []byte {
	if len(value) == len(digestPrefix)+sha256.Size && bytes.HasPrefix(value, []byte(digestPrefix)) {
		return value
	}
	return append([]byte(digestPrefix), sum(value)...)
}

func sum(value []byte) []byte {
	mac := hmac.New(sha256.New, digestKey)
	mac.Write(value)
	return mac.Sum(nil)
}

// bounded is a map with at most so many of the keys, those in keep first.
func bounded(m map[string]string, most int, keep ...string) map[string]string {
	if len(m) <= most {
		return m
	}
	kept := make(map[string]string, most)
	for _, key := range append(slices.Clone(keep), slices.Sorted(maps.Keys(m))...) {
		if value, ok := m[key]; ok && len(kept) < most {
			kept[key] = value
		}
	}
	return kept
}
