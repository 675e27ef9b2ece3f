package storagebucket

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"avalonhosting.example/bucketoperator/internal/controllers/outside"
)

// An idempotency key is "<uid>-<attempt>-<check>". The uid of the object that
// it was first made for makes it unique, the attempt tells a bucket that was
// made again from the one that vanished, and the check binds it to namespace
// and name: it goes with the object into a restored cluster, but a key copied
// to another tenant's object is refused, as it would hand over the bucket.

// firstAttempt is the attempt of a key that no bucket was lost under.
const firstAttempt = "0"

var keyPattern = regexp.MustCompile(`^[0-9a-f-]{36}-(0|[0-9a-f]{16})-[0-9a-f]{16}$`)

// newKey is the key of an object's first bucket. lostID is the id of the
// present bucket when the key that made it is no longer known, else empty.
func newKey(object types.NamespacedName, uid types.UID, lostID string) string {
	attempt := firstAttempt
	if lostID != "" {
		attempt = outside.Digest(lostID)
	}
	return formatKey(object, string(uid), attempt)
}

// nextKey is the key to make a bucket with after the one with vanishedID,
// which key made, is gone.
func nextKey(object types.NamespacedName, key, vanishedID string) string {
	uid, attempt, _ := splitKey(key)
	return formatKey(object, uid, outside.Digest(attempt, vanishedID))
}

// keyBelongsTo tells whether key was made for an object of this name.
func keyBelongsTo(object types.NamespacedName, key string) bool {
	if !keyPattern.MatchString(key) {
		return false
	}
	uid, attempt, ok := splitKey(key)
	return ok && key == formatKey(object, uid, attempt)
}

func formatKey(object types.NamespacedName, uid, attempt string) string {
	return fmt.Sprintf("%s-%s-%s", uid, attempt, outside.Digest(object.Namespace, object.Name, uid, attempt))
}

func splitKey(key string) (uid, attempt string, ok bool) {
	rest, _, ok := cutLast(key, "-")
	if !ok {
		return "", "", false
	}
	return cutLast(rest, "-")
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}
