package child_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
)

// maxCompact is the most bytes that a compact object may have, as JSON.
const maxCompact = 48 << 10

func compact[C client.Object](t *testing.T, object C) C {
	t.Helper()
	out, err := child.Compact(object)
	if err != nil {
		t.Fatal(err)
	}
	// client-go transforms what it has listed twice.
	once := out.(C)
	twice, err := child.Compact(once.DeepCopyObject())
	if diff := cmp.Diff(any(once), twice); err != nil || diff != "" {
		t.Errorf("a %T that is made compact twice differs (%v):\n%.1000s", object, err, diff)
	}
	return once
}

func wantBounded(t *testing.T, object client.Object) {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > maxCompact {
		t.Errorf("a compact %T has %d bytes, want at most %d: %.2000s …", object, len(raw), maxCompact, raw)
	}
}

func TestACompactObjectIsBoundedWhateverIsInIt(t *testing.T) {
	t.Parallel()
	many := func(key func(int) string, value string) map[string]string {
		m := make(map[string]string, 10_000)
		for i := range 10_000 {
			m[key(i)] = value
		}
		return m
	}
	longKey := func(i int) string { return fmt.Sprintf("%0253d/%063d", i, i) }
	meta := metav1.ObjectMeta{Name: "name", Namespace: "space"}
	topology := many(longKey, "v")
	for name, object := range map[string]client.Object{
		"an annotation of 150 KB": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{"a": strings.Repeat("a", 150_000), child.InheritedAnnotation: strings.Repeat("b", 150_000)},
		}},
		"10,000 labels and annotations": &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Labels: many(longKey, strings.Repeat("v", 63)), Annotations: many(longKey, strings.Repeat("v", 256)),
		}},
		"10,000 finalizers": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Finalizers: slicesOf(10_000, func(i int) string { return longKey(i) })}},
		"a Secret of 1 MB":  &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": make([]byte, 1<<20)}},
		"a Secret of 10,000 keys": &corev1.Secret{ObjectMeta: meta, Data: func() map[string][]byte {
			m := map[string][]byte{}
			for i := range 10_000 {
				m[fmt.Sprintf("%0253d", i)] = make([]byte, 100)
			}
			return m
		}()},
		"a Secret with a type of 1 MB": &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretType(strings.Repeat("t", 1<<20))},
		"an owner with a name of 1 MB": &corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Pod", Name: strings.Repeat("n", 1<<20), UID: "1", Controller: new(true),
		}}}},
		"10,000 ports": &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Ports: slicesOf(10_000, func(i int) corev1.ServicePort {
				return corev1.ServicePort{Name: fmt.Sprint(i), Port: int32(i), TargetPort: intstr.FromInt32(int32(i))}
			}),
			Selector: many(longKey, "v"), ExternalIPs: slicesOf(10_000, func(int) string { return "192.0.2.1" }),
		}},
		"endpoints": &discoveryv1.EndpointSlice{
			ObjectMeta: meta,
			Endpoints: slicesOf(1000, func(int) discoveryv1.Endpoint {
				return discoveryv1.Endpoint{
					Addresses: slicesOf(100, func(int) string { return strings.Repeat("a", 253) }),
					TargetRef: &corev1.ObjectReference{Name: strings.Repeat("n", 1000), FieldPath: longText},
					Zone:      new(strings.Repeat("z", 1000)), DeprecatedTopology: topology,
				}
			}),
			Ports: slicesOf(10_000, func(int) discoveryv1.EndpointPort { return discoveryv1.EndpointPort{Name: new("n")} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantBounded(t, compact(t, object))
		})
	}
}

// TestNoFieldOfACompactObjectIsUnbounded fills every field there is: one that a
// later version of Kubernetes adds is among them.
func TestNoFieldOfACompactObjectIsUnbounded(t *testing.T) {
	t.Parallel()
	for _, object := range []client.Object{&corev1.Secret{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}} {
		t.Run(fmt.Sprintf("%T", object), func(t *testing.T) {
			t.Parallel()
			fill(reflect.ValueOf(object).Elem(), 0)
			owner := true
			object.SetOwnerReferences(append(object.GetOwnerReferences(), metav1.OwnerReference{
				APIVersion: longText, Kind: longText, Name: longText, UID: types.UID(longText), Controller: &owner,
			}))
			object.SetName("name") // the API server bounds these
			object.SetNamespace("space")
			object.SetUID("uid")
			object.SetResourceVersion("1")
			object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Any"))
			object.SetFinalizers(slicesOf(40, func(i int) string { return fmt.Sprintf("%0317d", i) }))
			wantBounded(t, compact(t, object))
		})
	}
}

var longText = strings.Repeat("x", 100_000)

// apiBounded are the fields whose texts the API server bounds.
var apiBounded = map[string]bool{
	"ExternalName": true, "ClusterIP": true, "ClusterIPs": true, "IPFamilies": true, "ExternalIPs": true, "LoadBalancerSourceRanges": true,
	"Type": true, "SessionAffinity": true, "ExternalTrafficPolicy": true, "IPFamilyPolicy": true, "InternalTrafficPolicy": true,
	"TrafficDistribution": true, "LoadBalancerClass": true, "Ports": true, "Addresses": true, "AddressType": true, "ForZones": true, "ForNodes": true,
}

// fill fills everything in v with far too much.
func fill(v reflect.Value, depth int) {
	if depth > 8 {
		return
	}
	switch v.Kind() { //nolint:exhaustive // the others have a size of their own
	case reflect.String:
		v.SetString(longText)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(longText))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 20, 20))
		for i := range 20 {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 100 {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(value, depth+1)
			if value.Kind() == reflect.String && i > 0 {
				value.SetString("short")
			}
			v.SetMapIndex(reflect.ValueOf(fmt.Sprintf("%0253d", i)).Convert(v.Type().Key()), value)
		}
	case reflect.Struct:
		if v.Type().PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" && v.Type().Name() != "ObjectMeta" && v.Type().Name() != "Condition" {
			return
		}
		for i := range v.NumField() {
			field, of := v.Type().Field(i), v.Type()
			secretType := of == reflect.TypeFor[corev1.Secret]() && field.Name == "Type"
			if !field.IsExported() || apiBounded[field.Name] && !secretType {
				continue
			}
			// Labels and selectors have short values, by the API server.
			if field.Name == "Labels" || field.Name == "Selector" || field.Name == "DeprecatedTopology" {
				v.Field(i).Set(reflect.ValueOf(map[string]string{}))
				for j := range 100 {
					v.Field(i).SetMapIndex(reflect.ValueOf(fmt.Sprintf("%0317d", j)), reflect.ValueOf(strings.Repeat("v", 63)))
				}
				continue
			}
			fill(v.Field(i), depth+1)
		}
	}
}

func slicesOf[E any](n int, of func(int) E) []E {
	list := make([]E, n)
	for i := range list {
		list[i] = of(i)
	}
	return list
}

func TestACompactSecretHoldsItsDataAndNothingElse(t *testing.T) {
	t.Parallel()
	want := map[string][]byte{"id": []byte("b-1"), "empty": nil}
	live := func() *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{"id": []byte("b-1"), "empty": nil, "theirs": []byte("x")}}
	}
	if !child.HoldsData(live().Data, want) || !child.HoldsData(compact(t, live()).Data, want) {
		t.Error("the data is not recognized")
	}
	sum := sha256.Sum256([]byte("b-1"))
	for name, value := range map[string][]byte{
		"another value": []byte("b-2"), "no value": nil, "a digest": sum[:], "a digest in hex": []byte(hex.EncodeToString(sum[:])),
		"a digest as it is written": []byte("hmac-sha256:" + hex.EncodeToString(sum[:])),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := live()
			changed.Data["id"] = value
			if child.HoldsData(changed.Data, want) || child.HoldsData(compact(t, changed).Data, want) {
				t.Errorf("%q passes for the value", value)
			}
		})
	}
	missing := live()
	delete(missing.Data, "empty")
	if child.HoldsData(missing.Data, want) || child.HoldsData(compact(t, missing).Data, want) {
		t.Error("a missing key passes for an empty one")
	}
	if raw := fmt.Sprintf("%q", compact(t, live()).Data); strings.Contains(raw, "b-1") {
		t.Errorf("the compact form gives the value away: %s", raw)
	}
}

func TestCompactKeepsWhatTellsWhoseTheObjectIs(t *testing.T) {
	t.Parallel()
	labels := map[string]string{engine.Label: engine.LabelValue}
	for i := range 100 {
		labels[fmt.Sprintf("a%03d", i)] = "x"
	}
	owners := slicesOf(50, func(i int) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: fmt.Sprint(i), UID: "1"}
	})
	controller := metav1.OwnerReference{APIVersion: "example/v1", Kind: "Kind", Name: strings.Repeat("n", 253), UID: "2", Controller: new(true)}
	c := compact(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "n", Namespace: "s", UID: "3", ResourceVersion: "4", Labels: labels, OwnerReferences: append(owners, controller),
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}})
	if c.Labels[engine.Label] != engine.LabelValue || c.Name != "n" || c.Namespace != "s" || c.UID != "3" || c.ResourceVersion != "4" {
		t.Errorf("the compact form is %+v", c.ObjectMeta)
	}
	if got := metav1.GetControllerOf(c); got == nil || !reflect.DeepEqual(*got, controller) || len(c.OwnerReferences) != 1 || c.ManagedFields != nil {
		t.Errorf("the owners are %+v", c.OwnerReferences)
	}
}

func TestCompactLeavesOtherThingsAlone(t *testing.T) {
	t.Parallel()
	for _, thing := range []any{"a string", &runtime.Unknown{Raw: []byte("x")}} {
		if out, err := child.Compact(thing); err != nil || !reflect.DeepEqual(out, thing) {
			t.Errorf("%v became %v, %v", thing, out, err)
		}
	}
}
