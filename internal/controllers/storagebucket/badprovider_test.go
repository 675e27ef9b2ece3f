package storagebucket_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
)

func TestBehaviour10TenantsCannotReachWhatTheyMayNot(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, endpoint, reason string }{
		{"metadata address", "http://169.254.169.254/latest", "EndpointRefused"},
		{"link-local address", "http://[fe80::1]:80", "EndpointRefused"},
		{"loopback address", "http://127.0.0.1:8080", "EndpointRefused"},
		{"loopback name", "http://localhost:8080", "EndpointRefused"},
		{"mapped address", "http://[::ffff:169.254.169.254]", "EndpointRefused"},
		{"decimal address", "http://2852039166/", "EndpointInvalid"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, mockprovider.Options{})
			provider := &testkit.Recorder{}
			w.Start(t, testkit.Settings{RefuseLoopback: true, WrapProvider: provider.Wrap})
			w.Create(t, testkit.Config("default", tc.endpoint, ""), testkit.Bucket("photos"))
			config := w.WaitConfigCondition(t, "default", storagev1.ConditionEndpointAllowed, metav1.ConditionFalse, tc.reason)
			wantText(t, "the configuration's message", messageOf(config.Status.Conditions, "Ready"), "spec.endpoint")
			bucket := w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, tc.reason)
			wantText(t, "the bucket's message", messageOf(bucket.Status.Conditions, "Ready"), "spec.endpoint")
			if calls := provider.Requests(); len(calls) != 0 {
				t.Errorf("the calls %v were made", calls)
			}
			w.Remove(t, testkit.Bucket("photos"), testkit.Config("default", "", ""))
			w.WaitGone(t, testkit.Bucket("photos"))
			w.WaitGone(t, testkit.Config("default", "", ""))
		})
	}
}

func TestBehaviour10TheOperatorsOwnDefaultEndpointMayBeLoopback(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{RefuseLoopback: true, DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
}

// TestABadProviderGivesAConditionAndNoLoop meets the operator with every kind
// of answer that a provider must not give.
func TestABadProviderGivesAConditionAndNoLoop(t *testing.T) {
	t.Parallel()
	const apiKey = "canary-5d41402abc4b2a76b9719d911017c592"
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed, with the token %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	for name, tc := range map[string]struct {
		fault  mockprovider.Fault
		reason string
		parts  []string
	}{
		"HTML":                 {mockprovider.Fault{ContentType: "text/html", Body: "<html><body>Welcome</body></html>"}, "MalformedResponse", []string{"spec.endpoint"}},
		"10 MB of JSON":        {mockprovider.Fault{BodySize: 10 << 20}, "ResponseTooLarge", []string{"spec.endpoint"}},
		"an id with slashes":   {mockprovider.Fault{Body: `{"id":"../../admin","phase":"Active"}`}, "MalformedResponse", []string{"id"}},
		"an empty body":        {mockprovider.Fault{Empty: true}, "MalformedResponse", []string{"empty"}},
		"a redirect":           {mockprovider.Fault{Status: 307, Location: elsewhere.URL}, "RedirectRefused", []string{"spec.endpoint"}},
		"a hang":               {mockprovider.Fault{Hang: true}, "ProviderUnavailable", nil},
		"a dropped connection": {mockprovider.Fault{Drop: true}, "ProviderUnavailable", nil},
		"its own secret back":  {mockprovider.Fault{Status: 422, Body: `{"error":"the key ` + apiKey + ` may not"}`}, "SpecRefused", nil},
		"terminal words":       {mockprovider.Fault{Status: 400, Body: `{"error":"\u001b[31mred\r\nline"}`}, "SpecRefused", []string{"line"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := testkit.NewWorld(t, mockprovider.Options{APIKeys: map[string]string{apiKey: "acme"}})
			api := &testkit.Recorder{}
			w.Start(t, testkit.Settings{WrapAPI: api.Wrap, CallTimeout: 300 * time.Millisecond})
			rule := w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Fault: tc.fault})
			w.Create(t, testkit.Secret("credentials", apiKey), testkit.Config("default", w.URL, "credentials"), testkit.Bucket("photos"))
			bucket := w.WaitCondition(t, "photos", "Ready", metav1.ConditionFalse, tc.reason)
			message := messageOf(bucket.Status.Conditions, "Ready")
			wantText(t, "the message", message, tc.parts...)
			if strings.ContainsAny(message, "\r\n\x1b") {
				t.Errorf("the message has control characters: %q", message)
			}
			for _, r := range api.Requests() {
				if contains(r.Body, apiKey) {
					t.Errorf("the key was written in %s %s", r.Method, r.Path)
				}
			}
			rule.Remove()
			if tc.reason == "SpecRefused" || tc.reason == "RedirectRefused" { // for good, until something changes
				testkit.Modify(t, w, "default", &storagev1.BucketProviderConfig{}, func(c *storagev1.BucketProviderConfig) { c.Spec.RateLimit.QPS++ })
			}
			w.WaitReady(t, "photos")
			if buckets := w.Provider.Buckets(); len(buckets) != 1 {
				t.Errorf("the provider has %v", buckets)
			}
		})
	}
}

func TestATerminalRefusalIsNotRetried(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	operator := w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos", func(b *storagev1.StorageBucket) { b.Spec.Region = "atlantis-1" }))
	bucket := w.WaitCondition(t, "photos", "Stalled", metav1.ConditionTrue, "SpecRefused")
	wantText(t, "the message", messageOf(bucket.Status.Conditions, "Ready"), "atlantis-1")
	operator.Stop(t)
	api := &testkit.Recorder{}
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL, WrapAPI: api.Wrap})
	aWholeLife(t)
	if calls := w.Provider.Calls(); len(calls) != 1 {
		t.Errorf("the provider was called %d times, want once: %v", len(calls), calls)
	}
	if writes := api.WritesTo("/storagebuckets/photos/status"); len(writes) != 0 {
		t.Errorf("the restart wrote %v", writes)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Provider.Faults().Add(mockprovider.Rule{Operation: mockprovider.Create, Times: 1, Fault: mockprovider.Fault{Status: 429, RetryAfter: "2"}})
	w.Start(t, testkit.Settings{DefaultEndpoint: w.URL})
	w.Create(t, testkit.Bucket("photos"))
	w.WaitReady(t, "photos")
	var creates []time.Time
	for _, c := range w.Provider.Calls() {
		if c.Operation == mockprovider.Create {
			creates = append(creates, c.At)
		}
	}
	if len(creates) != 2 || creates[1].Sub(creates[0]) < 2*time.Second {
		t.Errorf("the create calls came at %v, want two at least 2 s apart", creates)
	}
}

func TestAProviderThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	w, dead := testkit.NewWorld(t, mockprovider.Options{}), testkit.NewWorld(t, mockprovider.Options{})
	dead.Provider.Faults().Add(mockprovider.Rule{Fault: mockprovider.Fault{Hang: true}})
	w.Start(t, testkit.Settings{})
	w.Create(t, testkit.Config("dead", dead.URL, ""), testkit.Config("alive", w.URL, ""))
	const many = 20
	for i := range many {
		w.Create(t, testkit.Bucket(fmt.Sprintf("dead-%d", i), testkit.ServedBy("dead")))
	}
	testkit.Eventually(t, func(context.Context) string {
		if len(dead.Provider.Calls()) == 0 {
			return "nothing hangs yet"
		}
		return ""
	})
	for i := range many {
		w.Create(t, testkit.Bucket(fmt.Sprintf("alive-%d", i), testkit.ServedBy("alive")))
	}
	for i := range many {
		w.WaitReady(t, fmt.Sprintf("alive-%d", i))
	}
}

func TestARateLimitIsKeptAndEverybodyGetsATurn(t *testing.T) {
	t.Parallel()
	w := testkit.NewWorld(t, mockprovider.Options{})
	w.Start(t, testkit.Settings{})
	config := testkit.Config("default", w.URL, "")
	config.Spec.RateLimit = storagev1.RateLimit{QPS: 20, Burst: 5}
	w.Create(t, config)
	const many = 40
	for i := range many {
		w.Create(t, testkit.Bucket(fmt.Sprintf("bucket-%d", i)))
	}
	for i := range many {
		w.WaitReady(t, fmt.Sprintf("bucket-%d", i))
	}
	calls := w.Provider.Calls()
	if len(calls) != many {
		t.Errorf("%d buckets took %d calls, want one each", many, len(calls))
	}
	if took, least := calls[many-1].At.Sub(calls[0].At), (many-1-5)*time.Second/20; took < least {
		t.Errorf("%d calls took %s, the limit asks for at least %s", many, took, least)
	}
}
