package child

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
)

// InheritedAnnotation lists on a child the labels and annotations that came from
// the spec of its owner, so that one that is taken out of the spec goes.
const InheritedAnnotation = "bucketoperator.avalonhosting.example/inherited-metadata"

// Metadata is the labels and annotations that a user wants on the children of an
// object. Those that the operator needs for itself win over them.
type Metadata struct {
	Labels, Annotations map[string]string
}

// Inherited is the Metadata of a spec's inheritedMetadata, which may be nil.
func Inherited(spec *apimeta.InheritedMetadata) Metadata {
	if spec == nil {
		return Metadata{}
	}
	return Metadata{Labels: plain(spec.Labels), Annotations: plain(spec.Annotations)}
}

func plain[V ~string](m map[string]V) map[string]string {
	plain := make(map[string]string, len(m))
	for key, value := range m {
		plain[key] = string(value)
	}
	return plain
}

// record is the value of InheritedAnnotation; empty when the user wants nothing.
func (m Metadata) record() string {
	var keys []string
	for key := range m.Labels {
		keys = append(keys, "label:"+key)
	}
	for key := range m.Annotations {
		keys = append(keys, "annotation:"+key)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}

// put makes a child that is to be created carry the operator's label and what
// the user wants.
func (m Metadata) put(want client.Object) {
	labels := maps.Clone(m.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, want.GetLabels())
	labels[engine.Label] = engine.LabelValue
	want.SetLabels(labels)
	record := m.record()
	if record == "" {
		return
	}
	annotations := maps.Clone(m.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, want.GetAnnotations())
	annotations[InheritedAnnotation] = record
	want.SetAnnotations(annotations)
}

// same tells whether a live child carries what want, on which put was called, does.
func (m Metadata) same(live, want client.Object) bool {
	return holds(live.GetLabels(), want.GetLabels()) && holds(live.GetAnnotations(), want.GetAnnotations()) &&
		sameValue(live.GetAnnotations()[InheritedAnnotation], m.record())
}

func holds(have, want map[string]string) bool {
	for key, value := range want {
		if got, ok := have[key]; !ok || !sameValue(got, value) {
			return false
		}
	}
	return true
}

// sameValue compares the value of a label or annotation, which a cache may hold
// as a digest only.
func sameValue(have, want string) bool { return have == want || have == engine.CompactValue(want) }

// correct gives a live child what want carries, and takes away what the user
// does not want any more.
func (m Metadata) correct(live, want client.Object) {
	labels, annotations := maps.Clone(live.GetLabels()), maps.Clone(live.GetAnnotations())
	for key := range strings.FieldsSeq(annotations[InheritedAnnotation]) {
		if label, ok := strings.CutPrefix(key, "label:"); ok {
			delete(labels, label)
		}
		if annotation, ok := strings.CutPrefix(key, "annotation:"); ok {
			delete(annotations, annotation)
		}
	}
	delete(annotations, InheritedAnnotation)
	live.SetLabels(merged(labels, want.GetLabels()))
	live.SetAnnotations(merged(annotations, want.GetAnnotations()))
}

func merged(have, added map[string]string) map[string]string {
	if have == nil {
		return maps.Clone(added)
	}
	maps.Copy(have, added)
	return have
}
