package misoperation_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
)

// refusal checks that the API server's refusal names the field.
func refusal(t *testing.T, m mistake, err error) {
	t.Helper()
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Errorf("%s: %v, want Invalid or BadRequest", m, err)
		return
	}
	path := strings.TrimSuffix(m.path, ".unheardOf")
	if !strings.Contains(err.Error(), path) {
		t.Errorf("%s: the refusal does not name %s: %v", m, path, err)
	}
}

// toldBy tells whether a message names the field, or the cause of the trouble
// with it. Where a value is told it stands alone, not inside another word.
func (m mistake) toldBy(message string) bool {
	words := []string{strings.Split(m.path, ".")[1]}
	if text, ok := m.value.(string); ok {
		words = append(words, text)
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			words = append(words, u.Host)
		}
	}
	for _, word := range words {
		if word != "" && regexp.MustCompile(`(^|[^\w])`+regexp.QuoteMeta(word)+`($|[^\w])`).MatchString(message) {
			return true
		}
	}
	return false
}

// judge says why an object with a mistake in it is not in order, or not yet;
// empty means that it is: Ready, or with a message that tells what is wrong.
func judge(object metav1.Object, conditions []metav1.Condition, m mistake) (ready bool, why string) {
	c := meta.FindStatusCondition(conditions, "Ready")
	switch {
	case c == nil || c.ObservedGeneration != object.GetGeneration():
		return false, object.GetName() + " was not looked at"
	case c.Status == metav1.ConditionTrue:
		return true, ""
	case c.Status == metav1.ConditionFalse && m.toldBy(c.Message):
		return false, ""
	}
	return false, fmt.Sprintf("Ready of %s is %s, %s: %s", object.GetName(), c.Status, c.Reason, c.Message)
}

// converged says in what a Ready bucket is not what its spec asks for.
func (a *arena) converged(b *storagev1.StorageBucket) string {
	for _, made := range a.Provider.Buckets() {
		if made.ID != b.Status.ID {
			continue
		}
		wantEncrypted := b.Spec.Encrypted != nil && *b.Spec.Encrypted
		switch {
		case made.Region != b.Spec.Region:
			return fmt.Sprintf("the bucket is in %s, want %s", made.Region, b.Spec.Region)
		case made.SizeGB != b.Spec.SizeGB && !meta.IsStatusConditionFalse(b.Status.Conditions, storagev1.ConditionSizeApplied):
			return fmt.Sprintf("the bucket has %d GB, want %d, and no condition says so", made.SizeGB, b.Spec.SizeGB)
		case made.Encrypted != wantEncrypted && !meta.IsStatusConditionFalse(b.Status.Conditions, storagev1.ConditionEncryptionApplied):
			return fmt.Sprintf("the bucket is encrypted: %t, want %t, and no condition says so", made.Encrypted, wantEncrypted)
		}
		return ""
	}
	return fmt.Sprintf("bucket %q of Ready object %s is not at the provider", b.Status.ID, b.Name)
}
