package testnode_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"avalonhosting.example/bucketoperator/test/e2e/testnode"
)

func TestMain(m *testing.M) { testnode.Main(m) }

var (
	images     sync.Once
	echoImage  string
	redisImage string
)

// makeImages makes the images of this package's workloads, once.
func makeImages(t *testing.T) {
	t.Helper()
	testnode.NeedsOwnNode(t, "loading an image")
	images.Do(func() {
		echoImage = testnode.GoImage(t, "echo", "avalonhosting.example/bucketoperator/test/e2e/echo")
		redisImage = testnode.DebianImage(t, "redis", "redis-server", "redis-cli")
	})
	if echoImage == "" || redisImage == "" {
		t.Fatal("the images could not be made, as another test tells")
	}
}

const (
	echoPort  = 8080
	redisPort = 6379
)

// echo is a pod that answers, and asks, on echoPort.
func echo(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	makeImages(t)
	return pod(namespace, name, corev1.Container{
		Image: echoImage,
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(echoPort)}},
			PeriodSeconds: 1,
		},
	})
}

// redis is a pod that keeps nothing.
func redis(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	makeImages(t)
	return pod(namespace, name, corev1.Container{
		Image: redisImage,
		Args:  []string{"--save", "", "--protected-mode", "no"},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"redis-cli", "ping"}}},
			PeriodSeconds: 1,
		},
	})
}

// pod has one container, of the same name.
func pod(namespace, name string, container corev1.Container) *corev1.Pod {
	container.Name = name
	container.ImagePullPolicy = corev1.PullNever
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		RunAsNonRoot:             new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(5)),
			Containers:                    []corev1.Container{container},
		},
	}
}

// service gives a pod a name, for those who look it up.
func service(t *testing.T, pod *corev1.Pod, port int32) *corev1.Service {
	t.Helper()
	created, err := testnode.Client(t).CoreV1().Services(pod.Namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name},
		Spec:       corev1.ServiceSpec{Selector: pod.Labels, Ports: []corev1.ServicePort{{Port: port}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}
