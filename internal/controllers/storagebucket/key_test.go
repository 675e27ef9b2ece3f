package storagebucket

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestKeysBelongToOneNameAndNeverComeAgain(t *testing.T) {
	t.Parallel()
	object := types.NamespacedName{Namespace: "team-a", Name: "photos"}
	uid := types.UID("1ffefd1f-b62d-4b52-8d56-d0dda3107a4e")
	first := newKey(object, uid, "")
	second := nextKey(object, first, "bucket-1")
	third := nextKey(object, second, "bucket-1") // a provider may give an id again
	restored := newKey(object, uid, "bucket-1")
	seen := map[string]bool{}
	for _, key := range []string{first, second, third, restored} {
		if !keyBelongsTo(object, key) {
			t.Errorf("key %q does not belong to its own object", key)
		}
		if seen[key] {
			t.Errorf("key %q came twice", key)
		}
		seen[key] = true
		if !strings.HasPrefix(key, string(uid)) || len(key) > 128 {
			t.Errorf("key %q is not made of the uid, or too long for a header that providers take", key)
		}
		for _, other := range []types.NamespacedName{
			{Namespace: "team-b", Name: "photos"}, {Namespace: "team-a", Name: "music"}, {Namespace: "team-a-photos", Name: ""},
		} {
			if keyBelongsTo(other, key) {
				t.Errorf("key %q of %s belongs to %s as well", key, object, other)
			}
		}
	}
	if first != newKey(object, uid, "") {
		t.Error("the first key is another one each time")
	}
	for _, forged := range []string{"", "-", "--", "a-b-c", first + "x", strings.ToUpper(first), strings.Repeat("a", 10_000)} {
		if keyBelongsTo(object, forged) {
			t.Errorf("the forged key %.40q belongs to the object", forged)
		}
	}
}
