// Package providertest is the suite that every kind of provider must pass.
package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"avalonhosting.example/bucketoperator/internal/provider"
)

// Fixture is a provider without buckets, and what the suite has to know of it.
type Fixture struct {
	// Client reaches the provider.
	Client provider.Client
	// Want is a bucket that the provider makes.
	Want provider.Spec
	// Refused is a bucket that the provider refuses to make; nil if there is none.
	Refused *provider.Spec
	// Buckets is how many buckets the provider has.
	Buckets func() int
	// Settle lets enough time pass for new buckets to become Active.
	Settle func()
	// HonoursKeys is whether a key makes one bucket only.
	HonoursKeys bool
	// Resizes is whether the provider can resize, and reports sizes.
	Resizes bool
	// Unauthorized reaches the provider with credentials that it does not
	// take; nil if it takes anybody.
	Unauthorized provider.Client
	// Unreachable is a Client of a provider that is not there.
	Unreachable provider.Client
	// Hanging is a Client of a provider that never answers.
	Hanging provider.Client
}

// Conformance runs the suite. Setup makes a fresh Fixture for each test in it,
// and cleans up after it.
func Conformance(t *testing.T, setup func(t *testing.T) Fixture) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Fixture){
		"a bucket is made once and becomes Active":            testCreate,
		"the same key makes the same bucket":                  testSameKey,
		"the same key at the same time makes the same bucket": testSameKeyAtOnce,
		"the key of a deleted bucket makes no other":          testKeyOfDeleted,
		"other keys make other buckets":                       testOtherKeys,
		"an absent bucket is not found":                       testAbsent,
		"a bucket is deleted, and again":                      testDelete,
		"a bucket is resized, or that is unsupported":         testResize,
		"a refused spec is terminal and makes nothing":        testRefused,
		"wrong credentials are told as such by every call":    testUnauthorized,
		"an absent provider is transient to every call":       testUnreachable,
		"a provider that hangs holds no call for ever":        testHanging,
		"a call that is given up says so":                     testCanceled,
		"a probe changes nothing":                             testProbe,
		"an id that no provider gave reaches nothing":         testBadIDs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t))
		})
	}
}

func testCreate(t *testing.T, f Fixture) {
	made := f.create(t, "key-1")
	if made.Phase != provider.Provisioning && made.Phase != provider.Active {
		t.Errorf("a new bucket is %s", made.Phase)
	}
	f.wantBuckets(t, 1)
	f.Settle()
	got, err := f.Client.Get(t.Context(), made.ID)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	if got.ID != made.ID || got.Phase != provider.Active {
		t.Errorf("Get = %+v, want %s, Active", got, made.ID)
	}
	if got.Region != "" && got.Region != f.Want.Region {
		t.Errorf("Region = %q, want %q", got.Region, f.Want.Region)
	}
	if got.SizeGB != 0 && got.SizeGB != f.Want.SizeGB {
		t.Errorf("SizeGB = %d, want %d", got.SizeGB, f.Want.SizeGB)
	}
	if got.Encrypted != nil && *got.Encrypted != f.Want.Encrypted {
		t.Errorf("Encrypted = %v, want %v", *got.Encrypted, f.Want.Encrypted)
	}
}

func testSameKey(t *testing.T, f Fixture) {
	first, second := f.create(t, "key-1"), f.create(t, "key-1")
	if !f.HonoursKeys {
		return // that the second call did not fail is all there is to ask
	}
	if first.ID != second.ID {
		t.Errorf("one key made %s and %s", first.ID, second.ID)
	}
	f.wantBuckets(t, 1)
}

func testSameKeyAtOnce(t *testing.T, f Fixture) {
	if !f.HonoursKeys {
		return
	}
	const callers = 4
	ids := make([]string, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			bucket, err := f.Client.Create(t.Context(), "key-1", f.Want)
			if err != nil {
				t.Errorf("Create: %v", err)
			}
			ids[i] = bucket.ID
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("one key made %q", ids)
		}
	}
	f.wantBuckets(t, 1)
}

func testKeyOfDeleted(t *testing.T, f Fixture) {
	if !f.HonoursKeys {
		return
	}
	made := f.create(t, "key-1")
	if err := f.Client.Delete(t.Context(), made.ID); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	_, err := f.Client.Create(t.Context(), "key-1", f.Want)
	wantRefusal(t, "Create with the key of a deleted bucket", err, provider.ErrTerminal)
	f.wantBuckets(t, 0)
}

func testOtherKeys(t *testing.T, f Fixture) {
	if first, second := f.create(t, "key-1"), f.create(t, "key-2"); first.ID == second.ID {
		t.Errorf("two keys made the one bucket %s", first.ID)
	}
	f.wantBuckets(t, 2)
}

func testAbsent(t *testing.T, f Fixture) {
	_, err := f.Client.Get(t.Context(), "bucket-0")
	wantRefusal(t, "Get", err, provider.ErrNotFound)
}

func testDelete(t *testing.T, f Fixture) {
	made := f.create(t, "key-1")
	for _, which := range []string{"first", "second"} {
		if err := f.Client.Delete(t.Context(), made.ID); err != nil {
			t.Fatalf("%s Delete: %v", which, err)
		}
	}
	_, err := f.Client.Get(t.Context(), made.ID)
	wantRefusal(t, "Get", err, provider.ErrNotFound)
	f.wantBuckets(t, 0)
}

func testResize(t *testing.T, f Fixture) {
	made := f.create(t, "key-1")
	larger := f.Want.SizeGB + 1
	resized, err := f.Client.Resize(t.Context(), made.ID, larger)
	if !f.Resizes {
		_ = wantError(t, "Resize", err, provider.ErrUnsupported)
		return
	}
	if err != nil {
		t.Fatalf("Resize: %v", err)
	}
	if resized.ID != made.ID {
		t.Errorf("Resize = %+v, want bucket %s", resized, made.ID)
	}
	got, err := f.Client.Get(t.Context(), made.ID)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	if got.SizeGB != larger {
		t.Errorf("SizeGB = %d, want %d", got.SizeGB, larger)
	}
}

func testRefused(t *testing.T, f Fixture) {
	if f.Refused == nil {
		return
	}
	_, err := f.Client.Create(t.Context(), "key-1", *f.Refused)
	wantRefusal(t, "Create", err, provider.ErrTerminal)
	f.wantBuckets(t, 0)
	f.create(t, "key-1") // the same key, once the spec was corrected
	f.wantBuckets(t, 1)
}

func testUnauthorized(t *testing.T, f Fixture) {
	if f.Unauthorized == nil {
		return
	}
	made := f.create(t, "key-1")
	each(t, f.Unauthorized, made.ID, f.Want, func(t *testing.T, call string, err error) {
		wantRefusal(t, call, err, provider.ErrUnauthorized)
	})
	f.wantBuckets(t, 1)
}

func testUnreachable(t *testing.T, f Fixture) {
	each(t, f.Unreachable, "bucket-1", f.Want, func(t *testing.T, call string, err error) {
		wantRefusal(t, call, err, provider.ErrTransient)
	})
}

func testHanging(t *testing.T, f Fixture) {
	_, err := f.Hanging.Create(t.Context(), "key-1", f.Want)
	e := wantError(t, "Create", err, provider.ErrTransient)
	if e != nil && e.Refused {
		t.Error("a create call without an answer counts as refused: a bucket may have been made")
	}
}

func testCanceled(t *testing.T, f Fixture) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Client.Get(ctx, "bucket-1")
	_ = wantError(t, "Get", err, context.Canceled)
}

func testProbe(t *testing.T, f Fixture) {
	if err := f.Client.Probe(t.Context()); err != nil {
		t.Errorf("Probe: %v", err)
	}
	f.wantBuckets(t, 0)
}

func testBadIDs(t *testing.T, f Fixture) {
	f.create(t, "key-1")
	for _, id := range []string{"", ".", "..", "../buckets", "a/b", "a?b", "a#b", "a%2fb", "a\r\nb", "-"} {
		_, getErr := f.Client.Get(t.Context(), id)
		_, resizeErr := f.Client.Resize(t.Context(), id, 2)
		deleteErr := f.Client.Delete(t.Context(), id)
		for call, err := range map[string]error{"Get": getErr, "Resize": resizeErr, "Delete": deleteErr} {
			wantRefusal(t, fmt.Sprintf("%s(%q)", call, id), err, provider.ErrTerminal)
		}
	}
	f.wantBuckets(t, 1)
}

// each makes every call once.
func each(t *testing.T, client provider.Client, id string, want provider.Spec, check func(t *testing.T, call string, err error)) {
	t.Helper()
	_, createErr := client.Create(t.Context(), "another-key", want)
	check(t, "Create", createErr)
	_, getErr := client.Get(t.Context(), id)
	check(t, "Get", getErr)
	_, resizeErr := client.Resize(t.Context(), id, want.SizeGB+1)
	check(t, "Resize", resizeErr)
	check(t, "Delete", client.Delete(t.Context(), id))
	check(t, "Probe", client.Probe(t.Context()))
}

func (f Fixture) create(t *testing.T, key string) provider.Bucket {
	t.Helper()
	bucket, err := f.Client.Create(t.Context(), key, f.Want)
	if err != nil {
		t.Fatalf("Create with %s: %v", key, err)
	}
	if !provider.CheckID(bucket.ID) {
		t.Fatalf("Create answers with the id %q", bucket.ID)
	}
	return bucket
}

func (f Fixture) wantBuckets(t *testing.T, want int) {
	t.Helper()
	if got := f.Buckets(); got != want {
		t.Errorf("the provider has %d buckets, want %d", got, want)
	}
}

// wantError checks that a call failed as it should, in the form that every
// error of a Client has.
func wantError(t *testing.T, call string, err, want error) *provider.Error {
	t.Helper()
	var e *provider.Error
	if !errors.As(err, &e) {
		t.Errorf("%s = %v, want a *provider.Error", call, err)
		return nil
	}
	if !errors.Is(err, want) {
		t.Errorf("%s = %s %s: %v, want %v", call, e.Class, e.Reason, err, want)
	}
	if e.Reason == "" || e.Message == "" {
		t.Errorf("%s fails without a reason or a message: %#v", call, e)
	}
	return e
}

// wantRefusal checks, besides, that nothing was changed for certain.
func wantRefusal(t *testing.T, call string, err, want error) {
	t.Helper()
	if e := wantError(t, call, err, want); e != nil && !e.Refused {
		t.Errorf("%s fails without saying that nothing was changed: %#v", call, e)
	}
}
