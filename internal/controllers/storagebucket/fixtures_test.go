package storagebucket_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"avalonhosting.example/bucketoperator/internal/testkit"
)

func messageOf(conditions []metav1.Condition, conditionType string) string {
	if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
		return c.Message
	}
	return ""
}

func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q does not mention %q", what, text, part)
		}
	}
}

// waitEvent waits until an event of that reason was recorded for the object,
// and tells whether its note has the parts.
func waitEvent(t *testing.T, w *testkit.World, object, eventType, reason string, parts ...string) {
	t.Helper()
	note := ""
	testkit.Eventually(t, func(ctx context.Context) string {
		list := &eventsv1.EventList{}
		if err := w.Client.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
			return err.Error()
		}
		for _, e := range list.Items {
			if e.Regarding.Name == object && e.Reason == reason && e.Type == eventType {
				note = e.Note
				return ""
			}
		}
		return fmt.Sprintf("no event %s/%s for %s among %d", eventType, reason, object, len(list.Items))
	})
	wantText(t, "the event "+reason, note, parts...)
}

// eventsOf are the events of that reason that were recorded for the object.
func eventsOf(t *testing.T, w *testkit.World, object, reason string) []eventsv1.Event {
	t.Helper()
	list := &eventsv1.EventList{}
	if err := w.Client.List(t.Context(), list, client.InNamespace(w.Namespace)); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name != object || e.Reason != reason })
}
