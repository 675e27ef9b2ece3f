package child

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/engine"
)

// What a cache holds of a child, whatever somebody may have put into it. Each
// bound is far above what the operator itself writes.
const (
	maxData   = 32 // keys of a Secret
	maxListed = 4  // ports, endpoints and the like

	maxFinalizers = 16
)

// Compact is a transform for caches of children: it drops what nobody reads,
// and holds values whose size others choose as digests. What differs from what
// is wanted is read from the API server before it is corrected, so that nothing
// of what is dropped here is lost.
func Compact(in any) (any, error) {
	object, ok := in.(client.Object)
	if !ok {
		return in, nil
	}
	engine.CompactMetadata(object, InheritedAnnotation)
	object.SetFinalizers(firstOf(object.GetFinalizers(), maxFinalizers))
	switch o := object.(type) {
	case *corev1.Secret:
		compactData(o)
		o.Type = corev1.SecretType(engine.CompactValue(string(o.Type)))
	case *corev1.Service:
		o.Status = corev1.ServiceStatus{}
		compactService(&o.Spec)
	case *discoveryv1.EndpointSlice:
		o.Endpoints, o.Ports = first(o.Endpoints), first(o.Ports)
		for i := range o.Endpoints {
			compactEndpoint(&o.Endpoints[i])
		}
	}
	return object, nil
}

func compactService(spec *corev1.ServiceSpec) {
	spec.Ports = first(spec.Ports)
	spec.ExternalIPs = first(spec.ExternalIPs)
	spec.LoadBalancerSourceRanges = first(spec.LoadBalancerSourceRanges)
	spec.LoadBalancerIP = engine.CompactValue(spec.LoadBalancerIP)
	spec.Selector = bounded(spec.Selector, maxListed)
}

func compactEndpoint(e *discoveryv1.Endpoint) {
	e.Addresses = first(e.Addresses)
	e.DeprecatedTopology = bounded(e.DeprecatedTopology, maxListed)
	for _, text := range []*string{e.Hostname, e.NodeName, e.Zone} {
		if text != nil {
			*text = engine.CompactValue(*text)
		}
	}
	if ref := e.TargetRef; ref != nil {
		e.TargetRef = &corev1.ObjectReference{
			APIVersion: engine.CompactValue(ref.APIVersion), Kind: engine.CompactValue(ref.Kind), Namespace: engine.CompactValue(ref.Namespace), Name: engine.CompactValue(ref.Name),
			UID: types.UID(engine.CompactValue(string(ref.UID))), FieldPath: engine.CompactValue(ref.FieldPath), ResourceVersion: engine.CompactValue(ref.ResourceVersion),
		}
	}
	if e.Hints != nil {
		e.Hints.ForZones, e.Hints.ForNodes = first(e.Hints.ForZones), first(e.Hints.ForNodes)
	}
}

// compactData keeps of a Secret's values their digests.
func compactData(secret *corev1.Secret) {
	data := make(map[string][]byte, min(len(secret.Data), maxData))
	for _, key := range firstOf(slices.Sorted(maps.Keys(secret.Data)), maxData) {
		data[key] = engine.Digest(secret.Data[key])
	}
	secret.Data, secret.StringData = data, nil
}

// HoldsData tells whether a Secret, live or from a cache that holds it compactly,
// has all of want; what others have put there is theirs.
func HoldsData(have, want map[string][]byte) bool {
	for key, value := range want {
		got, ok := have[key]
		if !ok || string(got) != string(value) && string(got) != string(engine.Digest(value)) {
			return false
		}
	}
	return true
}

func first[E any](list []E) []E { return firstOf(list, maxListed) }

func firstOf[E any](list []E, most int) []E {
	if len(list) > most {
		return slices.Clone(list[:most])
	}
	return list
}

// bounded is a map with at most so many of the keys, in their order.
func bounded(m map[string]string, most int) map[string]string {
	if len(m) <= most {
		return m
	}
	kept := make(map[string]string, most)
	for _, key := range slices.Sorted(maps.Keys(m))[:most] {
		kept[key] = m[key]
	}
	return kept
}
