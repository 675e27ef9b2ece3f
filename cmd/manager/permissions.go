package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"avalonhosting.example/bucketoperator/config"
	"avalonhosting.example/bucketoperator/internal/controllers"
)

// leftOut is how many namespaces of --namespaces the operator does not work in.
var leftOut = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "bucketoperator_namespaces_left_out",
	Help: "How many of the namespaces of --namespaces the operator does not work in, as it had no permission there when it started.",
})

const (
	// questions is how many are asked at a time: there are some 30 for each namespace.
	questions = 16
	// An authorizer may be out for a moment, such as a webhook, and the answer is
	// then no decision. It is asked again, all questions together for so long.
	undecidedPatience = 5 * time.Second
	undecidedPause    = 500 * time.Millisecond
)

// checkPermissions fails with all that is not allowed.
func checkPermissions(ctx context.Context, cluster *rest.Config, o options) ([]string, error) {
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("using the configuration of the cluster: %w", err)
	}
	return reviewPermissions(ctx, client, o, undecidedPatience)
}

// reviewPermissions asks the API server what is allowed: only that one knows,
// whatever authorizes there. The result is the namespaces to work in. One that is
// gone, or whose users have taken the operator's rights, is left out, or it would
// end the operator for all others.
func reviewPermissions(ctx context.Context, client kubernetes.Interface, o options, patience time.Duration) ([]string, error) {
	namespaces := o.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	needs, err := controllerNeeds(config.ManagerRole, controllers.Definitions, o.controllers)
	if err != nil {
		return nil, err
	}
	review := permissionReview{client: client, patience: patience}
	for _, namespace := range namespaces {
		review.add(namespace, needs, namespace)
	}
	if o.leader.elect {
		review.add(o.leader.namespace, leaderNeeds, own)
	}
	if o.metrics.enabled() && o.metrics.secure {
		review.add(metav1.NamespaceAll, metricsNeeds, own)
	}
	if err := review.ask(ctx); err != nil {
		if apierrors.IsForbidden(err) {
			// Some clusters take even this question from those they do not know.
			ctrl.Log.Info("Permissions were not checked: this user may not ask for them", "error", err.Error())
			return o.namespaces, nil
		}
		return nil, fmt.Errorf("asking the API server for permissions: %w", err)
	}
	missing := review.missing()
	served := slices.DeleteFunc(slices.Clone(namespaces), func(namespace string) bool { return len(missing[namespace]) > 0 })
	if len(missing[own]) > 0 || len(served) == 0 {
		var all []string
		for _, part := range append(slices.Clone(namespaces), own) {
			all = append(all, missing[part]...)
		}
		return nil, fmt.Errorf("%s may not %s: apply the roles and bindings of config/rbac, as `make deploy` does",
			review.user(ctx), strings.Join(all, "; "))
	}
	if len(o.namespaces) == 0 {
		return nil, nil
	}
	for _, namespace := range namespaces {
		if lacks := missing[namespace]; len(lacks) > 0 {
			ctrl.Log.Error(nil, "A namespace of --namespaces is left out: give the permissions there, and restart the operator",
				"namespace", namespace, "missing", strings.Join(lacks, "; "))
		}
	}
	leftOut.Set(float64(len(namespaces) - len(served)))
	return served, nil
}

// own stands for what the operator needs for itself, beside the namespaces: no
// namespace has such a name.
const own = "operator's own"

// question is whether a verb of a need is allowed.
type question struct {
	part      string // what cannot be done without: a namespace, or own
	namespace string
	need      need
	verb      string
	allowed   bool
	undecided string // why it was not decided; empty when it was
}

// permissionReview collects questions, asks them and tells what is not allowed.
type permissionReview struct {
	client    kubernetes.Interface
	patience  time.Duration // how long what is not decided is asked again
	questions []question
}

func (r *permissionReview) add(namespace string, needs []need, part string) {
	for _, n := range needs {
		for _, verb := range n.verbs {
			r.questions = append(r.questions, question{part: part, namespace: namespace, need: n, verb: verb})
		}
	}
}

// ask ends with the first question that could not be asked.
func (r *permissionReview) ask(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(questions)
	for i := range r.questions {
		group.Go(func() error { return r.decide(ctx, patient, &r.questions[i]) })
	}
	return group.Wait()
}

// decide asks a question, and again while it is not decided and patient lasts.
func (r *permissionReview) decide(ctx, patient context.Context, q *question) error {
	if err := r.put(ctx, q); err != nil || q.undecided == "" {
		return err
	}
	err := wait.PollUntilContextCancel(patient, undecidedPause, false, func(context.Context) (bool, error) {
		err := r.put(ctx, q)
		return q.undecided == "", err
	})
	if wait.Interrupted(err) {
		return ctx.Err()
	}
	return err
}

// put puts a question to the API server once.
func (r *permissionReview) put(ctx context.Context, q *question) error {
	answer, err := r.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: q.namespace, Verb: q.verb, Group: q.need.group, Resource: q.need.resource,
			Subresource: q.need.subresource, Name: q.need.name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	q.allowed, q.undecided = answer.Status.Allowed, ""
	if !answer.Status.Allowed && !answer.Status.Denied {
		q.undecided = answer.Status.EvaluationError
	}
	return nil
}

// missing tells for each part what is not allowed, in the order of the needs.
func (r *permissionReview) missing() map[string][]string {
	missing := map[string][]string{}
	for i := 0; i < len(r.questions); {
		first, end := &r.questions[i], i
		var denied []string
		undecided := ""
		for ; end < len(r.questions) && r.questions[end].part == first.part && sameNeed(r.questions[end].need, first.need); end++ {
			if !r.questions[end].allowed {
				denied = append(denied, r.questions[end].verb)
				undecided = cmp.Or(undecided, r.questions[end].undecided)
			}
		}
		if len(denied) > 0 {
			lacks := describe(strings.Join(denied, ","), first.need, first.namespace)
			if undecided != "" {
				lacks += fmt.Sprintf(" (not decided: %s)", undecided)
			}
			missing[first.part] = append(missing[first.part], lacks)
		}
		i = end
	}
	return missing
}

func sameNeed(a, b need) bool {
	return a.group == b.group && a.resource == b.resource && a.subresource == b.subresource && a.name == b.name
}

// describe names a permission as `kubectl auth can-i` takes it.
func describe(verbs string, n need, namespace string) string {
	resource := n.resource
	if n.group != "" {
		resource += "." + n.group
	}
	if part := cmp.Or(n.subresource, n.name); part != "" {
		resource += "/" + part
	}
	where := "in all namespaces"
	if namespace != metav1.NamespaceAll {
		where = "in namespace " + namespace
	}
	return fmt.Sprintf("%s %s %s", verbs, resource, where)
}

// user is who the API server takes this process for.
func (r *permissionReview) user(ctx context.Context) string {
	answer, err := r.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "this user"
	}
	return "user " + answer.Status.UserInfo.Username
}
