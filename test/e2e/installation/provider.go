package installation

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

// ProviderImage is that of the mock provider, which `make e2e` makes.
const ProviderImage = "registry.example.com/mockprovider:e2e"

// providerImageEnv names another image, for clusters that pull theirs.
const providerImageEnv = "PROVIDER_IMG"

const (
	providerPort = 8080
	adminPort    = 9090
)

// Provider is a bucket provider that runs in the cluster. It keeps its buckets
// in memory: its pod is not to be restarted.
type Provider struct {
	namespace string
	client    rest.Interface
}

// StartProvider runs a mock provider in a namespace of its own.
func StartProvider(t testing.TB, args ...string) *Provider {
	t.Helper()
	image := os.Getenv(providerImageEnv)
	if image == "" {
		image = ProviderImage
	}
	p := &Provider{namespace: testnode.Namespace(t), client: testnode.Client(t).CoreV1().RESTClient()}
	labels := map[string]string{"app": "mockprovider"}
	args = append([]string{fmt.Sprintf("--listen=:%d", providerPort), fmt.Sprintf("--admin-listen=:%d", adminPort)}, args...)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "mockprovider"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken: new(false),
					Containers: []corev1.Container{{
						Name: "mockprovider", Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Args: args,
						ReadinessProbe: &corev1.Probe{
							ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(providerPort)}},
							PeriodSeconds: 1,
						},
					}},
				},
			},
		},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "mockprovider"},
		Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{
			{Name: "protocol", Port: providerPort}, {Name: "admin", Port: adminPort},
		}},
	}
	c := Client(t)
	if err := c.Create(t.Context(), deployment); err != nil {
		t.Fatalf("running the provider: %v", err)
	}
	if err := c.Create(t.Context(), service); err != nil {
		t.Fatalf("giving the provider a name: %v", err)
	}
	WaitAvailable(t, p.namespace, deployment.Name)
	return p
}

// Endpoint is what a BucketProviderConfig names.
func (p *Provider) Endpoint() string {
	return fmt.Sprintf("http://mockprovider.%s.svc.cluster.local:%d", p.namespace, providerPort)
}

// AddressEndpoint is the same with an IP address, that of the Service.
func (p *Provider) AddressEndpoint(t testing.TB) string {
	t.Helper()
	service := &corev1.Service{}
	if err := Client(t).Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: "mockprovider"}, service); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://%s:%d", service.Spec.ClusterIP, providerPort)
}

// Bucket is a bucket as the provider has it.
type Bucket struct {
	ID     string `json:"id"`
	Key    string `json:"key"`
	SizeGB int32  `json:"sizeGB"`
}

// Buckets are all that the provider has.
func (p *Provider) Buckets(ctx context.Context) ([]Bucket, error) {
	var buckets []Bucket
	err := p.ask(ctx, p.client.Get(), "buckets", "", &buckets)
	return buckets, err
}

// Calls are how many calls of each operation the provider got.
func (p *Provider) Calls(ctx context.Context) (map[string]int, error) {
	var answer struct {
		Counts map[string]int `json:"counts"`
	}
	err := p.ask(ctx, p.client.Get(), "calls", "", &answer)
	return answer.Counts, err
}

// Call is a call as the provider has got it.
type Call struct {
	Operation string    `json:"operation"`
	Key       string    `json:"key"`
	Caller    string    `json:"caller"`
	At        time.Time `json:"at"`
}

// CallsFrom are the latest calls from an address, such as a pod's.
func (p *Provider) CallsFrom(ctx context.Context, address string) ([]Call, error) {
	var answer struct {
		Calls []Call `json:"calls"`
	}
	err := p.ask(ctx, p.client.Get(), "calls", "", &answer)
	return slices.DeleteFunc(answer.Calls, func(c Call) bool { return c.Caller != address }), err
}

// Fail makes calls fail, by the rules of docs/http-provider.md, until Heal.
func (p *Provider) Fail(ctx context.Context, rule string) error {
	return p.ask(ctx, p.client.Post(), "faults", rule, nil)
}

// Heal ends all faults.
func (p *Provider) Heal(ctx context.Context) error {
	return p.ask(ctx, p.client.Delete(), "faults", "", nil)
}

// ask goes by way of the API server, which reaches the pods of any cluster.
func (p *Provider) ask(ctx context.Context, request *rest.Request, what, body string, into any) error {
	request = request.Namespace(p.namespace).Resource("services").Name(fmt.Sprintf("http:mockprovider:%d", adminPort)).
		SubResource("proxy").Suffix("_mock", what)
	if body != "" {
		request = request.Body([]byte(body)).SetHeader("Content-Type", "application/json")
	}
	answer, err := request.DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("asking the provider for %s: %w", what, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("reading the provider's answer for %s: %w", what, err)
	}
	return nil
}
