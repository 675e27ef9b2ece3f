package storagebucket

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
)

// address is a provider's endpoint as a Service can front it.
type address struct {
	host     string // a host name; empty for an IP
	ip       netip.Addr
	port     int32
	portName string
}

// parseAddress takes an endpoint apart.
func parseAddress(endpoint string) (address, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" {
		return address{}, fmt.Errorf("endpoint %q is not a URL with a host", endpoint)
	}
	port, err := strconv.ParseUint(portOf(u), 10, 16)
	if err != nil || port == 0 {
		return address{}, fmt.Errorf("endpoint %q has a port that is not one", endpoint)
	}
	a := address{port: int32(port), portName: u.Scheme}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		a.ip = ip.Unmap().WithZone("")
	} else {
		a.host = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	}
	return a, nil
}

// local tells whether the address means another machine in each pod.
func (a address) local() bool {
	return a.host == "localhost" || strings.HasSuffix(a.host, ".localhost") ||
		a.ip.IsValid() && (a.ip.IsLoopback() || a.ip.IsUnspecified() || a.ip.IsLinkLocalUnicast() || a.ip.IsMulticast())
}

// publishEndpoint keeps the Service that is the provider's address in the
// cluster: an ExternalName for a host name; for an IP, a headless one without
// selector, and an EndpointSlice.
func (r *run) publishEndpoint(ctx context.Context) error {
	if !r.usable() {
		return engine.Skipped()
	}
	to, err := parseAddress(r.bucket.Status.Endpoint)
	if err != nil {
		return engine.Terminal("EndpointInvalid", err)
	}
	if err := r.ownService(ctx, to); err != nil {
		return err
	}
	if to.local() {
		// The API server takes no EndpointSlice with such an address, and rightly so.
		r.pass.SetConditionSilently(storagev1.ConditionEndpointReachable, metav1.ConditionFalse, storagev1.ReasonLoopback,
			"the provider's endpoint is a loopback address, which pods cannot reach: Service %s leads nowhere", r.bucket.Name)
	} else {
		r.pass.SetConditionSilently(storagev1.ConditionEndpointReachable, metav1.ConditionTrue, storagev1.ReasonWritten, "")
	}
	if to.host != "" || to.local() {
		return child.Remove(ctx, r.pass, &discoveryv1.EndpointSlice{ObjectMeta: r.childMeta()})
	}
	return r.ownEndpointSlice(ctx, to)
}

func (r *run) childMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: r.bucket.Name, Namespace: r.bucket.Namespace}
}

func (r *run) ownService(ctx context.Context, to address) error {
	spec := serviceSpec(to)
	return child.Ensure(ctx, r.pass, child.Child[*corev1.Service]{
		Want: &corev1.Service{ObjectMeta: r.childMeta(), Spec: spec},
		Correct: func(live *corev1.Service) {
			live.Spec.Type, live.Spec.ExternalName = spec.Type, spec.ExternalName
			live.Spec.Ports, live.Spec.Selector, live.Spec.ExternalIPs = spec.Ports, nil, nil
			if live.Spec.ClusterIP != spec.ClusterIP {
				live.Spec.ClusterIP, live.Spec.ClusterIPs = spec.ClusterIP, nil
			}
			if spec.Type == corev1.ServiceTypeExternalName {
				live.Spec.IPFamilies, live.Spec.IPFamilyPolicy, live.Spec.InternalTrafficPolicy = nil, nil, nil
			}
		},
		Same:       func(live *corev1.Service) bool { return sameService(live, spec) },
		Identifies: func(live *corev1.Service) bool { return sameService(live, spec) },
		Conflict:   storagev1.ReasonServiceConflict,
		// It has no address of its own that anybody could hold on to.
		Remake:   true,
		Metadata: child.Inherited(r.bucket.Spec.InheritedMetadata),
	})
}

func serviceSpec(to address) corev1.ServiceSpec {
	spec := corev1.ServiceSpec{
		Type:  corev1.ServiceTypeExternalName,
		Ports: []corev1.ServicePort{{Name: to.portName, Port: to.port, Protocol: corev1.ProtocolTCP}},
	}
	if to.host == "" {
		spec.Type, spec.ClusterIP = corev1.ServiceTypeClusterIP, corev1.ClusterIPNone
		return spec
	}
	spec.ExternalName = to.host
	return spec
}

func sameService(live *corev1.Service, want corev1.ServiceSpec) bool {
	if live.Spec.Type != want.Type || live.Spec.ExternalName != want.ExternalName ||
		live.Spec.ClusterIP != want.ClusterIP || len(live.Spec.Selector) != 0 || len(live.Spec.ExternalIPs) != 0 || len(live.Spec.Ports) != 1 {
		return false
	}
	have, wanted := live.Spec.Ports[0], want.Ports[0]
	return have.Name == wanted.Name && have.Port == wanted.Port && have.Protocol == wanted.Protocol
}

func (r *run) ownEndpointSlice(ctx context.Context, to address) error {
	family := discoveryv1.AddressTypeIPv4
	if to.ip.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	meta := r.childMeta()
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: r.bucket.Name}
	ready, protocol := true, corev1.ProtocolTCP
	want := &discoveryv1.EndpointSlice{
		ObjectMeta:  meta,
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{to.ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &to.portName, Port: &to.port, Protocol: &protocol}},
	}
	// The family of a slice cannot be changed: another takes its place.
	live := &discoveryv1.EndpointSlice{}
	if err := r.Client.Get(ctx, r.name(), live); err == nil && live.AddressType != family {
		if err := child.Remove(ctx, r.pass, live); err != nil {
			return err
		}
	}
	return child.Ensure(ctx, r.pass, child.Child[*discoveryv1.EndpointSlice]{
		Want: want,
		Same: func(live *discoveryv1.EndpointSlice) bool {
			return live.Labels[discoveryv1.LabelServiceName] == r.bucket.Name && live.AddressType == family &&
				equality.Semantic.DeepEqual(live.Endpoints, want.Endpoints) && equality.Semantic.DeepEqual(live.Ports, want.Ports)
		},
		Correct: func(live *discoveryv1.EndpointSlice) {
			live.Endpoints, live.Ports = want.Endpoints, want.Ports
		},
		// The garbage collector, or a restore, may have left it without an owner.
		Identifies: func(live *discoveryv1.EndpointSlice) bool {
			return live.Labels[discoveryv1.LabelServiceName] == r.bucket.Name
		},
		Conflict: storagev1.ReasonServiceConflict,
		Remake:   true,
		Metadata: child.Inherited(r.bucket.Spec.InheritedMetadata),
	})
}
