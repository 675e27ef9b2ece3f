package operator

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
)

// buckets is a definition with the one kind StorageBucket.
func buckets() Definition {
	return Definition{
		Name: "buckets", GroupVersion: storagev1.GroupVersion, AddToScheme: storagev1.AddToScheme,
		Kinds: []Kind{{Object: &storagev1.StorageBucket{}, List: &storagev1.StorageBucketList{}}},
		SetUp: func(*Setup) error { return nil },
	}
}

// secretMetadata is empty metadata of a Secret.
func secretMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return m
}

func TestAMistakeInADefinitionIsFound(t *testing.T) {
	t.Parallel()
	keep := func(in any) (any, error) { return in, nil }
	for name, test := range map[string]struct {
		change func(*Definition)
		more   []Definition
		want   string
	}{
		"none":               {func(*Definition) {}, nil, ""},
		"no set-up":          {func(d *Definition) { d.SetUp = nil }, nil, "SetUp"},
		"no kinds":           {func(d *Definition) { d.Kinds = nil }, nil, "no Kinds"},
		"another version":    {func(d *Definition) { d.GroupVersion.Version = "v9" }, nil, "v9"},
		"another kind":       {func(d *Definition) { d.Kinds[0].Object = &corev1.Secret{} }, nil, "is not storage.avalonhosting.example/v1, Kind=Secret"},
		"the list of others": {func(d *Definition) { d.Kinds[0].List = &storagev1.BucketProviderConfigList{} }, nil, "BucketProviderConfigList"},
		"transformed metadata": {func(d *Definition) {
			d.Cached = []Cached{{Object: secretMetadata(), Select: Metadata, Transform: keep}}
		}, nil, "cannot be transformed"},
		"metadata of nothing": {func(d *Definition) {
			d.Cached = []Cached{{Object: &corev1.Secret{}, Select: Metadata}}
		}, nil, "its kind set"},
		"twice the same group": {func(*Definition) {}, []Definition{buckets()}, "the same name or group"},
		"two transforms": {func(d *Definition) {
			d.Cached = []Cached{{Object: &corev1.Secret{}, Transform: keep}, {Object: &corev1.Secret{}, Select: All, Transform: keep}}
		}, nil, "both transform"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := buckets()
			test.change(&d)
			err := Validate(append([]Definition{d}, test.more...))
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestNamesChooseDefinitions(t *testing.T) {
	t.Parallel()
	all := []Definition{{Name: "a"}, {Name: "b"}}
	for _, names := range [][]string{{"a"}, {"b"}, {"a", "b"}} {
		if got := Names(Named(all, names)); !slices.Equal(got, names) {
			t.Errorf("%v chose %v", names, got)
		}
	}
	if got := Names(Named(all, nil)); len(got) != 2 {
		t.Errorf("no names chose %v", got)
	}
}

// byObject is how the manager's cache holds objects like the one given.
func byObject[T client.Object](t *testing.T, options cache.Options) cache.ByObject {
	t.Helper()
	for object, by := range options.ByObject {
		if _, is := object.(T); is {
			return by
		}
	}
	t.Fatalf("there are no options for %T", *new(T))
	return cache.ByObject{}
}

func TestOnlyOwnObjectsAreHeldUnlessAGroupWantsAll(t *testing.T) {
	t.Parallel()
	first, second := buckets(), buckets()
	first.Cached = []Cached{{Object: &corev1.Secret{}}, {Object: &corev1.Service{}, Select: All}, {Object: secretMetadata(), Select: Metadata}}
	second.Cached = []Cached{{Object: &corev1.Service{}}}
	options := CacheOptions([]Definition{first, second}, []string{"a", "b"})
	if len(options.ByObject) != 3 || len(options.DefaultNamespaces) != 2 {
		t.Errorf("the options are for %d types and %d namespaces, want 3 and 2", len(options.ByObject), len(options.DefaultNamespaces))
	}
	ours := labels.Set{engine.Label: engine.LabelValue}
	if by := byObject[*corev1.Secret](t, options); by.Label == nil || !by.Label.Matches(ours) || by.Label.Matches(labels.Set{}) {
		t.Errorf("Secrets are selected by %v", by.Label)
	}
	if by := byObject[*corev1.Service](t, options); by.Label != nil {
		t.Errorf("Services are selected by %v", by.Label)
	}
}

func TestATransformGetsTheWholeObject(t *testing.T) {
	t.Parallel()
	d := buckets()
	d.Kinds[0].Transform = func(in any) (any, error) {
		if len(in.(client.Object).GetManagedFields()) == 0 {
			t.Error("it does not see the managed fields, which child.Apply needs")
		}
		in.(client.Object).SetAnnotations(nil)
		return in, nil
	}
	bucket := &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{"a": "b"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}}
	by := byObject[*storagev1.StorageBucket](t, CacheOptions([]Definition{d}, nil))
	if _, err := by.Transform(bucket); err != nil || len(bucket.Annotations) > 0 {
		t.Errorf("what is held has %v: %v", bucket.Annotations, err)
	}
}
