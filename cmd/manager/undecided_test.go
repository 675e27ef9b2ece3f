package main

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
)

// answers is a client whose API server answers permission questions so.
func answers(answer func(authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clientgotesting.Action) (bool, runtime.Object, error) {
		review := action.(clientgotesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		review.Status = answer(*review.Spec.ResourceAttributes)
		return true, review, nil
	})
	return client
}

// What the API server cannot decide, as a webhook is out, is asked again, and is
// then no worse than a refusal.
func TestWhatIsNotDecidedIsAskedAgainAndLeavesOutItsNamespaceAlone(t *testing.T) {
	t.Parallel()
	out := authorizationv1.SubjectAccessReviewStatus{EvaluationError: "the webhook is out"}
	yes := authorizationv1.SubjectAccessReviewStatus{Allowed: true, EvaluationError: "the webhook is out"}
	no := authorizationv1.SubjectAccessReviewStatus{Denied: true, EvaluationError: "the webhook is out"}
	var asked atomic.Int32
	for name, test := range map[string]struct {
		answer   func(authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus
		patience time.Duration
		want     []string
		refusal  string
	}{
		"all is allowed": {
			answer: func(authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus { return yes },
			want:   []string{"a", "b"},
		},
		"one namespace is not decided": {
			answer: func(q authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
				if q.Namespace == "b" && q.Resource == "secrets" {
					return out
				}
				return yes
			},
			want: []string{"a"},
		},
		"one is denied, which is a decision": {
			answer: func(q authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
				if q.Namespace == "b" && q.Resource == "secrets" {
					return no
				}
				return yes
			},
			patience: time.Hour,
			want:     []string{"a"},
		},
		"decided when asked again": {
			answer: func(q authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus {
				if q.Namespace == "b" && q.Resource == "services" && q.Verb == "list" && asked.Add(1) == 1 {
					return out
				}
				return yes
			},
			patience: time.Hour,
			want:     []string{"a", "b"},
		},
		"nothing is decided": {
			answer:  func(authorizationv1.ResourceAttributes) authorizationv1.SubjectAccessReviewStatus { return out },
			refusal: "secrets in namespace a (not decided: the webhook is out)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options{namespaces: []string{"a", "b"}}
			served, err := reviewPermissions(t.Context(), answers(test.answer), o, test.patience)
			if (err != nil) != (test.refusal != "") || err != nil && !strings.Contains(err.Error(), test.refusal) {
				t.Errorf("the review ended with %v, want %q", err, test.refusal)
			}
			if !slices.Equal(served, test.want) {
				t.Errorf("it works in %v, want %v", served, test.want)
			}
		})
	}
}
