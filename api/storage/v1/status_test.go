package v1_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/localcluster/testplane"
)

func TestStatusIsWrittenThroughTheSubresourceOnly(t *testing.T) {
	t.Parallel()
	c, bucket := admin(t), testkit.Bucket("media-assets", testkit.InNamespace(testplane.Namespace(t)))
	bucket.Status = fullStatus()
	if err := c.Create(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(storagev1.StorageBucketStatus{}, bucket.Status); diff != "" {
		t.Errorf("a create wrote the status (-want +got):\n%s", diff)
	}
	bucket.Status = fullStatus()
	if err := c.Update(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(storagev1.StorageBucketStatus{}, bucket.Status); diff != "" {
		t.Errorf("an update wrote the status (-want +got):\n%s", diff)
	}
	bucket.Status, bucket.Spec.SizeGB = fullStatus(), 200
	if err := c.Status().Update(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	if bucket.Spec.SizeGB != 100 || bucket.Generation != 1 {
		t.Errorf("a status update changed the spec: sizeGB %d, generation %d", bucket.Spec.SizeGB, bucket.Generation)
	}
	if diff := cmp.Diff(fullStatus(), bucket.Status); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
}

func TestWhoMayEditStorageBucketsMayNotWriteTheirStatus(t *testing.T) {
	t.Parallel()
	namespace := testplane.Namespace(t)
	c, bucket := admin(t), testkit.Bucket("media-assets", testkit.InNamespace(namespace))
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "tenant"}
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "editor", Namespace: namespace}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{storagev1.GroupName}, Resources: []string{"storagebuckets"},
			Verbs: []string{"create", "get", "update", "patch", "delete"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "editor", Namespace: namespace}, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "editor"},
		},
	} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	tenant := newClient(t, testplane.User(subject.Name))
	testkit.Eventually(t, func(ctx context.Context) string { // the authorizer learns of the binding by a watch
		if err := tenant.Create(ctx, bucket); err != nil {
			return err.Error()
		}
		return ""
	})
	bucket.Spec.SizeGB = 200
	if err := tenant.Update(t.Context(), bucket); err != nil {
		t.Errorf("the spec could not be changed: %v", err)
	}
	bucket.Status = fullStatus()
	if err := tenant.Status().Update(t.Context(), bucket); !apierrors.IsForbidden(err) {
		t.Errorf("updating the status: %v, want Forbidden", err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"id":"bucket-of-another"}}`))
	if err := tenant.Status().Patch(t.Context(), bucket, patch); !apierrors.IsForbidden(err) {
		t.Errorf("patching the status: %v, want Forbidden", err)
	}
}

func TestStatusesOutOfBoundsAreRefused(t *testing.T) {
	t.Parallel()
	namespace := testplane.Namespace(t)
	c, bucket, config := admin(t), bucketObject(t, namespace), configObject(t, namespace)
	store(t, c, bucket)
	store(t, c, config)
	condition := func(key string, value any) map[string]any {
		object := map[string]any{
			"type": "Ready", "status": "True", "reason": "Available", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z",
		}
		object[key] = value
		return object
	}
	conditions := func(list ...any) edit { return set("status.conditions", list) }
	many := make([]any, 17)
	for i := range many {
		many[i] = condition("type", "T"+strings.Repeat("x", i))
	}
	for name, tc := range map[string]struct {
		change  edit
		refusal string
	}{
		"phase":                   {set("status.phase", "Unheard"), "status.phase: Unsupported value"},
		"id empty":                {set("status.id", ""), "status.id"},
		"id too long":             {set("status.id", strings.Repeat("a", 129)), "status.id: Too long"},
		"endpoint too long":       {set("status.endpoint", strings.Repeat("a", 2049)), "status.endpoint: Too long"},
		"endpoint empty":          {set("status.endpoint", ""), "status.endpoint"},
		"region too long":         {set("status.region", strings.Repeat("a", 64)), "status.region: Too long"},
		"region empty":            {set("status.region", ""), "status.region"},
		"sizeGB 0":                {set("status.sizeGB", int64(0)), "status.sizeGB"},
		"sizeGB 2^31":             {set("status.sizeGB", int64(1<<31)), "sizeGB"},
		"encrypted a text":        {set("status.encrypted", "yes"), "status.encrypted"},
		"observedGeneration 0":    {set("status.observedGeneration", int64(0)), "status.observedGeneration"},
		"createOutcome":           {set("status.createOutcome", "Created"), "status.createOutcome: Unsupported value"},
		"provider empty":          {set("status.provider", map[string]any{}), "status.provider"},
		"provider.name empty":     {set("status.provider.name", ""), "status.provider.name"},
		"provider.name too long":  {set("status.provider.name", strings.Repeat("a", 254)), "status.provider.name: Too long"},
		"provider.revision empty": {set("status.provider.revision", ""), "status.provider.revision"},
		"provider.revision long":  {set("status.provider.revision", strings.Repeat("a", 65)), "status.provider.revision: Too long"},
		"binding empty":           {set("status.binding", map[string]any{}), "status.binding.name: Required"},
		"binding.name empty":      {set("status.binding.name", ""), "status.binding.name"},
		"binding.name too long":   {set("status.binding.name", strings.Repeat("a", 254)), "status.binding.name: Too long"},
		"17 conditions":           {conditions(many...), "status.conditions: Too many"},
		"a condition twice":       {conditions(condition("type", "A"), condition("type", "A")), "status.conditions[1]: Duplicate value"},
		"condition status":        {conditions(condition("status", "yes")), "status.conditions[0].status"},
		"condition reason":        {conditions(condition("reason", "two words")), "status.conditions[0].reason"},
		"condition message":       {conditions(condition("message", strings.Repeat("a", 32769))), "status.conditions[0].message"},
		"condition type":          {conditions(condition("type", "a b")), "status.conditions[0].type"},
		"condition time":          {conditions(condition("lastTransitionTime", "yesterday")), "status.conditions[0].lastTransitionTime"},
		"a field nobody knows":    {set("status.lastPoll", "now"), `unknown field "status.lastPoll"`},
	} {
		t.Run("StorageBucket/"+name, func(t *testing.T) {
			t.Parallel()
			object := bucket.DeepCopy()
			tc.change(t, object)
			wantRefusal(t, c.Status().Update(t.Context(), object, &client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}}), tc.refusal)
		})
	}
	for name, tc := range map[string]struct {
		change  edit
		refusal string
	}{
		"observedGeneration 0": {set("status.observedGeneration", int64(0)), "status.observedGeneration"},
		"17 conditions":        {conditions(many...), "status.conditions: Too many"},
		"condition reason":     {conditions(condition("reason", "")), "status.conditions[0].reason"},
	} {
		t.Run("BucketProviderConfig/"+name, func(t *testing.T) {
			t.Parallel()
			object := config.DeepCopy()
			tc.change(t, object)
			wantRefusal(t, c.Status().Update(t.Context(), object), tc.refusal)
		})
	}
}
