package child_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apimeta "avalonhosting.example/bucketoperator/api/meta/v1"
	"avalonhosting.example/bucketoperator/internal/engine"
	"avalonhosting.example/bucketoperator/internal/engine/child"
)

const (
	getDeployment   = "GET deployments/app"
	patchDeployment = "PATCH deployments/app"
)

// intended is what a test changes between passes.
type intended struct {
	deployment *appsv1ac.DeploymentApplyConfiguration
	replicas   *appsv1ac.DeploymentApplyConfiguration // of the second manager; none when nil
	metadata   child.Metadata
	identifies func(*appsv1.Deployment) bool

	got *appsv1.Deployment // what Apply has returned
}

func extractDeployment(live *appsv1.Deployment, manager string) (any, error) {
	return appsv1ac.ExtractDeployment(live, manager)
}

// deploys keeps a Deployment as i wants it.
func (i *intended) deploys(ctx context.Context, pass *engine.Pass) error {
	wanted := child.Applied[*appsv1.Deployment]{
		Name: "app", Conflict: conflict, Metadata: i.metadata, Identifies: i.identifies,
		Intents: []child.Intent[*appsv1.Deployment]{{Fields: i.deployment, Extract: extractDeployment}},
	}
	if i.replicas != nil {
		wanted.Intents = append(wanted.Intents, child.Intent[*appsv1.Deployment]{
			Manager: replicasManager, Fields: i.replicas, Extract: extractDeployment,
		})
	}
	got, err := child.Apply(ctx, pass, wanted)
	i.got = got
	return err
}

func app() *appsv1.Deployment { return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "app"}} }

// simple is a small Deployment.
func simple(container *corev1ac.ContainerApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "app"}
	return appsv1ac.Deployment("app", "").WithSpec(appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(container))))
}

func server() *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().WithName("server").WithImage("example/server:1")
}

func replicas(n int32) *appsv1ac.DeploymentApplyConfiguration {
	return appsv1ac.Deployment("app", "").WithSpec(appsv1ac.DeploymentSpec().WithReplicas(n))
}

// everything is a pod template with one of all that the API server writes in a
// form of its own, or fills in.
func everything() *corev1ac.PodTemplateSpecApplyConfiguration {
	resources := corev1ac.ResourceRequirements().
		WithRequests(corev1.ResourceList{"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("1024Mi")}).
		WithLimits(corev1.ResourceList{"cpu": resource.MustParse("2.5"), "memory": resource.MustParse("3000000000"), "ephemeral-storage": resource.MustParse("0.5Gi")})
	probe := func() *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/healthz").WithPort(intstr.FromString("http")).
			WithHTTPHeaders(corev1ac.HTTPHeader().WithName("X-Probe").WithValue("1"))).WithPeriodSeconds(7)
	}
	required := corev1ac.NodeSelector().WithNodeSelectorTerms(corev1ac.NodeSelectorTerm().WithMatchExpressions(
		corev1ac.NodeSelectorRequirement().WithKey("disk").WithOperator(corev1.NodeSelectorOpIn).WithValues("ssd", "nvme")))
	spread := corev1ac.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(corev1ac.PodAffinityTerm().
		WithTopologyKey("kubernetes.io/hostname").WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "app"})))
	return corev1ac.PodTemplateSpec().WithLabels(map[string]string{"app": "app"}).WithAnnotations(map[string]string{"a": "1"}).WithSpec(corev1ac.PodSpec().
		WithContainers(
			corev1ac.Container().WithName("server").WithImage("example/server:1").WithCommand("serve").WithArgs("--port", "8080").
				WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(8080),
					corev1ac.ContainerPort().WithName("dns").WithContainerPort(53).WithProtocol(corev1.ProtocolUDP),
					corev1ac.ContainerPort().WithName("dns-tcp").WithContainerPort(53)).
				WithEnv(corev1ac.EnvVar().WithName("B").WithValue("2"), corev1ac.EnvVar().WithName("A").WithValue("1"), corev1ac.EnvVar().WithName("EMPTY").WithValue(""),
					corev1ac.EnvVar().WithName("POD").WithValueFrom(corev1ac.EnvVarSource().WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("metadata.name"))),
					corev1ac.EnvVar().WithName("CPU").WithValueFrom(corev1ac.EnvVarSource().WithResourceFieldRef(corev1ac.ResourceFieldSelector().WithResource("limits.cpu"))),
					corev1ac.EnvVar().WithName("MEM").WithValueFrom(corev1ac.EnvVarSource().WithResourceFieldRef(corev1ac.ResourceFieldSelector().WithResource("limits.memory").WithDivisor(resource.MustParse("1024Ki")))),
					corev1ac.EnvVar().WithName("KEY").WithValueFrom(corev1ac.EnvVarSource().WithSecretKeyRef(corev1ac.SecretKeySelector().WithName("s").WithKey("k")))).
				WithEnvFrom(corev1ac.EnvFromSource().WithSecretRef(corev1ac.SecretEnvSource().WithName("s").WithOptional(true))).
				WithResources(resources).
				WithVolumeMounts(corev1ac.VolumeMount().WithName("data").WithMountPath("/data"), corev1ac.VolumeMount().WithName("all").WithMountPath("/all").WithReadOnly(true)).
				WithLivenessProbe(probe()).WithReadinessProbe(probe().WithSuccessThreshold(1)).
				WithStartupProbe(corev1ac.Probe().WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromInt32(8080)))).
				WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().WithExec(corev1ac.ExecAction().WithCommand("sleep", "5")))).
				WithSecurityContext(corev1ac.SecurityContext().WithRunAsNonRoot(true).WithAllowPrivilegeEscalation(false).
					WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))),
			corev1ac.Container().WithName("bare").WithImage("example/bare").WithResources(corev1ac.ResourceRequirements()).WithSecurityContext(corev1ac.SecurityContext()),
		).
		WithInitContainers(corev1ac.Container().WithName("init").WithImage("example/init:1").WithRestartPolicy(corev1.ContainerRestartPolicyAlways)).
		WithVolumes(
			corev1ac.Volume().WithName("data").WithEmptyDir(corev1ac.EmptyDirVolumeSource().WithSizeLimit(resource.MustParse("1024Mi"))),
			corev1ac.Volume().WithName("tmp").WithEmptyDir(corev1ac.EmptyDirVolumeSource()),
			corev1ac.Volume().WithName("config").WithConfigMap(corev1ac.ConfigMapVolumeSource().WithName("c")),
			corev1ac.Volume().WithName("secret").WithSecret(corev1ac.SecretVolumeSource().WithSecretName("s").WithItems(corev1ac.KeyToPath().WithKey("k").WithPath("p"))),
			corev1ac.Volume().WithName("claim").WithPersistentVolumeClaim(corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName("c")),
			corev1ac.Volume().WithName("all").WithProjected(corev1ac.ProjectedVolumeSource().WithSources(
				corev1ac.VolumeProjection().WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().WithPath("token")),
				corev1ac.VolumeProjection().WithDownwardAPI(corev1ac.DownwardAPIProjection().WithItems(
					corev1ac.DownwardAPIVolumeFile().WithPath("labels").WithFieldRef(corev1ac.ObjectFieldSelector().WithFieldPath("metadata.labels")))),
				corev1ac.VolumeProjection().WithConfigMap(corev1ac.ConfigMapProjection().WithName("c")))),
		).
		WithAffinity(corev1ac.Affinity().WithNodeAffinity(corev1ac.NodeAffinity().WithRequiredDuringSchedulingIgnoredDuringExecution(required)).
			WithPodAntiAffinity(corev1ac.PodAntiAffinity().WithPreferredDuringSchedulingIgnoredDuringExecution(spread))).
		WithTopologySpreadConstraints(corev1ac.TopologySpreadConstraint().WithMaxSkew(1).WithTopologyKey("zone").
			WithWhenUnsatisfiable(corev1.ScheduleAnyway).WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "app"}))).
		WithTolerations(corev1ac.Toleration().WithKey("spot").WithOperator(corev1.TolerationOpExists)).
		WithNodeSelector(map[string]string{"os": "linux"}).
		WithImagePullSecrets(corev1ac.LocalObjectReference().WithName("pull")).
		WithHostAliases(corev1ac.HostAlias().WithIP("192.0.2.1").WithHostnames("a.example")).
		WithSecurityContext(corev1ac.PodSecurityContext().WithFSGroup(1000).WithSupplementalGroups(1, 2).WithSysctls(corev1ac.Sysctl().WithName("net.a").WithValue("1")).
			WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithTerminationGracePeriodSeconds(5).WithServiceAccountName("sa").WithAutomountServiceAccountToken(false).WithEnableServiceLinks(false))
}

// keeping keeps an object of any kind by one intent.
func keeping[C client.Object](name string, fields runtime.ApplyConfiguration, extract func(C, string) (any, error)) func(context.Context, *engine.Pass) error {
	return func(ctx context.Context, pass *engine.Pass) error {
		_, err := child.Apply(ctx, pass, child.Applied[C]{
			Name: name, Conflict: conflict, Intents: []child.Intent[C]{{Fields: fields, Extract: extract}},
		})
		return err
	}
}

func TestAnAppliedObjectCostsOneRequestAndNoneAfterwards(t *testing.T) {
	t.Parallel()
	selector := metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "app"})
	deployment := appsv1ac.Deployment("app", "").WithSpec(appsv1ac.DeploymentSpec().WithSelector(selector).WithTemplate(everything()).WithReplicas(0).
		WithMinReadySeconds(3).WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(appsv1ac.RollingUpdateDeployment().WithMaxSurge(intstr.FromString("25%")).WithMaxUnavailable(intstr.FromInt32(0)))))
	claim := corev1ac.PersistentVolumeClaim("data", "").WithSpec(corev1ac.PersistentVolumeClaimSpec().WithAccessModes(corev1.ReadWriteOnce).
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{"storage": resource.MustParse("1024Mi")})))
	claim.Kind, claim.APIVersion = nil, nil
	stateful := everything()
	stateful.Spec.Volumes = stateful.Spec.Volumes[1:]
	set := appsv1ac.StatefulSet("set", "").WithSpec(appsv1ac.StatefulSetSpec().WithSelector(selector).WithTemplate(stateful).WithReplicas(0).
		WithServiceName("set").WithPodManagementPolicy(appsv1.ParallelPodManagement).WithVolumeClaimTemplates(claim).
		WithUpdateStrategy(appsv1ac.StatefulSetUpdateStrategy().WithRollingUpdate(appsv1ac.RollingUpdateStatefulSetStrategy().WithPartition(0))).
		WithPersistentVolumeClaimRetentionPolicy(appsv1ac.StatefulSetPersistentVolumeClaimRetentionPolicy().WithWhenDeleted(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)))
	target := autoscalingv2ac.CrossVersionObjectReference().WithAPIVersion("apps/v1").WithKind("Deployment").WithName("app")
	scaler := autoscalingv2ac.HorizontalPodAutoscaler("scaler", "").WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
		WithScaleTargetRef(target).WithMinReplicas(1).WithMaxReplicas(9).WithMetrics(
		autoscalingv2ac.MetricSpec().WithType(autoscalingv2.ResourceMetricSourceType).WithResource(autoscalingv2ac.ResourceMetricSource().
			WithName("cpu").WithTarget(autoscalingv2ac.MetricTarget().WithType(autoscalingv2.UtilizationMetricType).WithAverageUtilization(80))),
		autoscalingv2ac.MetricSpec().WithType(autoscalingv2.PodsMetricSourceType).WithPods(autoscalingv2ac.PodsMetricSource().
			WithMetric(autoscalingv2ac.MetricIdentifier().WithName("requests")).
			WithTarget(autoscalingv2ac.MetricTarget().WithType(autoscalingv2.AverageValueMetricType).WithAverageValue(resource.MustParse("1000m")))),
		autoscalingv2ac.MetricSpec().WithType(autoscalingv2.ObjectMetricSourceType).WithObject(autoscalingv2ac.ObjectMetricSource().
			WithMetric(autoscalingv2ac.MetricIdentifier().WithName("queue")).WithDescribedObject(target).
			WithTarget(autoscalingv2ac.MetricTarget().WithType(autoscalingv2.ValueMetricType).WithValue(resource.MustParse("2000m")))),
	).WithBehavior(autoscalingv2ac.HorizontalPodAutoscalerBehavior().WithScaleDown(autoscalingv2ac.HPAScalingRules().
		WithPolicies(autoscalingv2ac.HPAScalingPolicy().WithType(autoscalingv2.PodsScalingPolicy).WithValue(1).WithPeriodSeconds(60)))))

	for name, tc := range map[string]struct {
		do      func(context.Context, *engine.Pass) error
		object  client.Object
		request string
	}{
		"Deployment": {
			do: keeping("app", deployment, extractDeployment), object: app(), request: patchDeployment,
		},
		"StatefulSet": {
			do: keeping("set", set, func(live *appsv1.StatefulSet, manager string) (any, error) {
				return appsv1ac.ExtractStatefulSet(live, manager)
			}),
			object: &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}, request: "PATCH statefulsets/set",
		},
		"HorizontalPodAutoscaler": {
			do: keeping("scaler", scaler, func(live *autoscalingv2.HorizontalPodAutoscaler, manager string) (any, error) {
				return autoscalingv2ac.ExtractHorizontalPodAutoscaler(live, manager)
			}),
			object: &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "scaler"}}, request: "PATCH horizontalpodautoscalers/scaler",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArena(t, tc.do)
			a.passCosts(tc.object, tc.request)
			a.wantCondition(metav1.ConditionTrue, "Done")
			a.read(tc.object)
			if !metav1.IsControlledBy(tc.object, a.owner) || tc.object.GetLabels()[engine.Label] != engine.LabelValue {
				t.Errorf("it is not marked as the owner's: %v %v", tc.object.GetOwnerReferences(), tc.object.GetLabels())
			}
			a.passCosts(tc.object)
			a.restart()
			a.passCosts(tc.object)
			a.wantCondition(metav1.ConditionTrue, "Done")
		})
	}
}

func TestWhatIsOursIsPutBackOnce(t *testing.T) {
	t.Parallel()
	wanted := func() *appsv1ac.DeploymentApplyConfiguration {
		d := simple(server().WithEnv(corev1ac.EnvVar().WithName("A").WithValue("1"), corev1ac.EnvVar().WithName("EMPTY").WithValue("")).
			WithPorts(corev1ac.ContainerPort().WithContainerPort(80)).
			WithResources(corev1ac.ResourceRequirements().WithLimits(corev1.ResourceList{"cpu": resource.MustParse("1000m")}))).
			WithLabels(map[string]string{"ours": "1"})
		d.Spec.Template.Spec.WithHostNetwork(false)
		return d
	}
	first := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	for name, damage := range map[string]func(*appsv1.Deployment){
		"a value":            func(d *appsv1.Deployment) { first(d).Image = "evil/server" },
		"a quantity":         func(d *appsv1.Deployment) { first(d).Resources.Limits["cpu"] = resource.MustParse("2") },
		"an env entry":       func(d *appsv1.Deployment) { first(d).Env[0].Value = "2" },
		"an empty env entry": func(d *appsv1.Deployment) { first(d).Env[1].Value = "2" },
		"an explicit false":  func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = true },
		"a missing env":      func(d *appsv1.Deployment) { first(d).Env = nil },
		"a missing port":     func(d *appsv1.Deployment) { first(d).Ports = nil },
		"a label":            func(d *appsv1.Deployment) { d.Labels["ours"] = "2" },
		"our own label":      func(d *appsv1.Deployment) { delete(d.Labels, engine.Label) },
		"the signature":      func(d *appsv1.Deployment) { d.Annotations = nil },
		"two envs of a name": func(d *appsv1.Deployment) {
			first(d).Env = append(first(d).Env, corev1.EnvVar{Name: "A", Value: "2"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &intended{deployment: wanted()}
			a := newArena(t, i.deploys)
			a.passCosts(app(), patchDeployment)
			right := app()
			a.read(right)
			change(a, app(), damage)
			a.passCosts(app(), getDeployment, patchDeployment)
			after := app()
			a.read(after)
			if diff := cmp.Diff([]any{right.Labels, right.Annotations, right.Spec}, []any{after.Labels, after.Annotations, after.Spec}); diff != "" {
				t.Errorf("it is not as before:\n%s", diff)
			}
			a.passCosts(app())
		})
	}
}

func TestWhatIsTakenOutOfAnIntentGoes(t *testing.T) {
	t.Parallel()
	i := &intended{
		deployment: simple(server().
			WithEnv(corev1ac.EnvVar().WithName("A").WithValue("1"),
				corev1ac.EnvVar().WithName("KEY").WithValueFrom(corev1ac.EnvVarSource().WithSecretKeyRef(corev1ac.SecretKeySelector().WithName("s").WithKey("k").WithOptional(true)))).
			WithPorts(corev1ac.ContainerPort().WithContainerPort(80), corev1ac.ContainerPort().WithContainerPort(81))).
			WithLabels(map[string]string{"ours": "1"}).WithAnnotations(map[string]string{"ours": "1"}),
		metadata: child.Metadata{Labels: map[string]string{"team": "blue"}, Annotations: map[string]string{"cost": "42"}},
	}
	a := newArena(t, i.deploys)
	a.passCosts(app(), patchDeployment)
	d := app()
	a.read(d)
	if d.Labels["team"] != "blue" || d.Annotations["cost"] != "42" {
		t.Errorf("the metadata is %+v", d.ObjectMeta)
	}
	change(a, app(), func(d *appsv1.Deployment) {
		c := &d.Spec.Template.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "THEIRS", Value: "stays"})
	})
	// What is left of KEY is less within a struct that is owned as a whole.
	i.deployment = simple(server().
		WithEnv(corev1ac.EnvVar().WithName("KEY").WithValueFrom(corev1ac.EnvVarSource().WithSecretKeyRef(corev1ac.SecretKeySelector().WithName("s").WithKey("k")))).
		WithPorts(corev1ac.ContainerPort().WithContainerPort(80)))
	i.metadata = child.Metadata{}
	a.passCosts(app(), getDeployment, patchDeployment)
	d = app()
	a.read(d)
	want := []corev1.EnvVar{
		{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "k"}}},
		{Name: "THEIRS", Value: "stays"},
	}
	c := d.Spec.Template.Spec.Containers[0]
	if diff := cmp.Diff(want, c.Env); diff != "" {
		t.Errorf("the environment differs:\n%s", diff)
	}
	if len(c.Ports) != 1 || c.Ports[0].ContainerPort != 80 {
		t.Errorf("the ports are %v", c.Ports)
	}
	if diff := cmp.Diff(map[string]string{engine.Label: engine.LabelValue}, d.Labels); diff != "" {
		t.Errorf("the labels differ:\n%s", diff)
	}
	for _, key := range []string{"ours", "cost", child.InheritedAnnotation} {
		if _, ok := d.Annotations[key]; ok {
			t.Errorf("the annotation %s stayed", key)
		}
	}
	a.passCosts(app())
}

func TestWhatIsTakenOutGoesAlsoWhereNothingElseTellsOfIt(t *testing.T) {
	t.Parallel()
	secretKey := func() *corev1ac.SecretKeySelectorApplyConfiguration {
		return corev1ac.SecretKeySelector().WithName("s").WithKey("k")
	}
	with := func(key *corev1ac.SecretKeySelectorApplyConfiguration) *appsv1ac.DeploymentApplyConfiguration {
		return simple(server().WithEnv(corev1ac.EnvVar().WithName("KEY").WithValueFrom(corev1ac.EnvVarSource().WithSecretKeyRef(key))))
	}
	for name, tc := range map[string]struct {
		before, after *appsv1ac.DeploymentApplyConfiguration
		gone          func(*appsv1.Deployment) bool
	}{
		"a label": {
			before: with(secretKey()).WithLabels(map[string]string{"ours": "1"}), after: with(secretKey()),
			gone: func(d *appsv1.Deployment) bool { return d.Labels["ours"] == "" },
		},
		"a part of a struct that is owned as a whole": {
			before: with(secretKey().WithOptional(true)), after: with(secretKey()),
			gone: func(d *appsv1.Deployment) bool {
				return d.Spec.Template.Spec.Containers[0].Env[0].ValueFrom.SecretKeyRef.Optional == nil
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &intended{deployment: tc.before}
			a := newArena(t, i.deploys)
			a.passCosts(app(), patchDeployment)
			i.deployment = tc.after
			a.passCosts(app(), getDeployment, patchDeployment)
			d := app()
			a.read(d)
			if !tc.gone(d) {
				t.Errorf("it stayed: %+v", d)
			}
			a.passCosts(app())
		})
	}
}

func TestAChangeOfAnImmutableFieldIsToldAndDeletesNothing(t *testing.T) {
	t.Parallel()
	i := &intended{deployment: simple(server())}
	a := newArena(t, i.deploys)
	a.passCosts(app(), patchDeployment)
	before := app()
	a.read(before)
	labels := map[string]string{"app": "another"}
	i.deployment.Spec.WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).Template.WithLabels(labels)
	a.wantBlockedBy(app(), apimeta.ReasonChildRefused, getDeployment, patchDeployment)
	after := app()
	a.read(after)
	if after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("version %s of %s became %s of %s", before.ResourceVersion, before.UID, after.ResourceVersion, after.UID)
	}
	i.deployment = simple(server())
	a.passCosts(app())
	a.wantCondition(metav1.ConditionTrue, "Done")
}

func TestApplyReturnsTheObjectAsItIs(t *testing.T) {
	t.Parallel()
	i := &intended{deployment: simple(server()), replicas: replicas(2)}
	a := newArena(t, i.deploys)
	for _, what := range []string{"as the answer to an apply", "from the cache"} {
		a.pass()
		live := app()
		a.read(live)
		if i.got.UID != live.UID || i.got.Spec.Template.Spec.Containers[0].Image != "example/server:1" || *i.got.Spec.Replicas != 2 {
			t.Errorf("%s: Apply returned %+v", what, i.got)
		}
		a.settle(app())
	}
}

func TestKeepManagedFieldsKeepsOurEntriesUpToABound(t *testing.T) {
	t.Parallel()
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource string, size int) metav1.ManagedFieldsEntry {
		fields := fmt.Sprintf(`{"f:metadata":{"f:labels":{"f:%s":{}}}}`, strings.Repeat("x", size))
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, Subresource: subresource, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const apply, update = metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	for name, tc := range map[string]struct {
		managers []string
		entries  []metav1.ManagedFieldsEntry
		want     []string
	}{
		"others' go": {
			entries: []metav1.ManagedFieldsEntry{entry("kubectl", apply, "", 10), entry(engine.FieldManager, apply, "", 10), entry(engine.FieldManager, update, "", 10)},
			want:    []string{engine.FieldManager},
		},
		"those of subresources go": {
			entries: []metav1.ManagedFieldsEntry{entry(engine.FieldManager, apply, "status", 10), entry(engine.FieldManager, apply, "", 10)},
			want:    []string{engine.FieldManager},
		},
		"a large one goes": {entries: []metav1.ManagedFieldsEntry{entry(engine.FieldManager, apply, "", 40_000)}},
		"of many with one name one stays": {
			entries: slicesOf(1000, func(int) metav1.ManagedFieldsEntry { return entry(engine.FieldManager, apply, "", 10) }),
			want:    []string{engine.FieldManager},
		},
		"both managers' stay": {
			managers: []string{engine.FieldManager, replicasManager},
			entries:  []metav1.ManagedFieldsEntry{entry(replicasManager, apply, "", 10), entry(engine.FieldManager, apply, "", 30_000)},
			want:     []string{engine.FieldManager, replicasManager},
		},
		"none": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ManagedFields: tc.entries}}
			if _, err := child.KeepManagedFields(tc.managers...)(d); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, entry := range d.ManagedFields {
				got = append(got, entry.Manager)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the managers differ:\n%s", diff)
			}
		})
	}
}
