package misoperation_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"avalonhosting.example/bucketoperator/internal/testkit"
)

// TestSecrets puts into a configuration's Secret what does not belong there,
// before and after a bucket was made with it. A good key is enough to mend it.
func TestSecrets(t *testing.T) {
	t.Parallel()
	a := newArena(t)
	for i, tc := range []struct {
		what string
		data map[string][]byte
	}{
		{"no key at all", nil},
		{"another key", map[string][]byte{"apikey": []byte(goodKey)}},
		{"an empty value", map[string][]byte{"apiKey": {}}},
		{"a blank", map[string][]byte{"apiKey": []byte(" ")}},
		{"a second header", map[string][]byte{"apiKey": []byte("a\r\nX-Evil: 1")}},
		{"a NUL", map[string][]byte{"apiKey": []byte("a\x00")}},
		{"binary", map[string][]byte{"apiKey": {0xff, 0xfe, 0x00}}},
		{"64 KiB", map[string][]byte{"apiKey": []byte(strings.Repeat("a", 64<<10))}},
		{"a wrong key", map[string][]byte{"apiKey": []byte("a-wrong-key")}},
	} {
		t.Run(tc.what, func(t *testing.T) {
			t.Parallel()
			name := fmt.Sprintf("secret-%d", i)
			config, bucket := a.config(name), a.bucket(name, name)
			if err := (mistake{path: "spec.secretRef.name", value: name}).in(config); err != nil {
				t.Fatal(err)
			}
			a.Create(t, config, bucket)
			a.waitFor(t, name, "secretRef") // it does not exist
			a.Create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: tc.data})
			a.waitFor(t, name, "apiKey")
			a.setSecret(t, name, map[string][]byte{"apiKey": []byte(goodKey)})
			a.ready(t, name)
			id := a.Bucket(t, name).Status.ID

			a.setSecret(t, name, tc.data)
			a.waitFor(t, name, "apiKey")
			a.setSecret(t, name, map[string][]byte{"apiKey": []byte(goodKey)})
			a.ready(t, name)
			if b := a.Bucket(t, name); b.Status.ID != id {
				t.Errorf("the bucket was %s and is now %s", id, b.Status.ID)
			}
			a.remove(t, bucket)
			a.remove(t, config)
		})
	}
}

func (a *arena) setSecret(t *testing.T, name string, data map[string][]byte) {
	t.Helper()
	testkit.Modify(t, a.World, name, &corev1.Secret{}, func(s *corev1.Secret) { s.Data = data })
}

// waitFor waits until a bucket is Ready or, unless told is empty, until its
// message says so much.
func (a *arena) waitFor(t *testing.T, bucket, told string) {
	t.Helper()
	testkit.Eventually(t, func(context.Context) string {
		b := a.Bucket(t, bucket)
		c := meta.FindStatusCondition(b.Status.Conditions, "Ready")
		switch {
		case c == nil || c.ObservedGeneration != b.Generation:
			return "it was not looked at"
		case told == "" && c.Status == metav1.ConditionTrue:
			return a.converged(b)
		case told != "" && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, told):
			return ""
		}
		return fmt.Sprintf("Ready is %s, %s: %s", c.Status, c.Reason, c.Message)
	})
}
