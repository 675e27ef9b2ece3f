package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
)

// calls are all calls of a Client, by name.
var calls = map[string]func(*testing.T, provider.Client) error{
	"Create": func(t *testing.T, c provider.Client) error {
		_, err := c.Create(t.Context(), "key-1", want)
		return err
	},
	"Get": func(t *testing.T, c provider.Client) error {
		_, err := c.Get(t.Context(), "bucket-1")
		return err
	},
	"Resize": func(t *testing.T, c provider.Client) error {
		_, err := c.Resize(t.Context(), "bucket-1", 200)
		return err
	},
	"Delete": func(t *testing.T, c provider.Client) error { return c.Delete(t.Context(), "bucket-1") },
	"Probe":  func(t *testing.T, c provider.Client) error { return c.Probe(t.Context()) },
}

func TestStatusesOfRefusalAndTrouble(t *testing.T) {
	t.Parallel()
	type verdict struct {
		class   provider.Class
		reason  string
		refused bool
	}
	every := func(v verdict) map[string]verdict {
		return map[string]verdict{"Create": v, "Get": v, "Resize": v, "Delete": v, "Probe": v}
	}
	but := func(all map[string]verdict, call string, v verdict) map[string]verdict { all[call] = v; return all }
	refused := verdict{provider.Terminal, "SpecRefused", true}
	unauthorized := verdict{provider.Unauthorized, "Unauthorized", true}
	trouble := verdict{provider.Transient, "ProviderUnavailable", false}
	unknown := verdict{provider.Transient, "MalformedResponse", false}
	wrong := verdict{provider.Transient, "EndpointWrong", true}
	redirect := verdict{provider.Transient, "RedirectRefused", false}
	success := verdict{}
	for status, verdicts := range map[int]map[string]verdict{
		400: every(refused), 409: every(refused), 422: every(refused),
		401: every(unauthorized), 403: every(unauthorized),
		404: {
			"Create": wrong,
			"Get":    {provider.NotFound, "BucketNotFound", true},
			"Resize": {provider.Unsupported, "ResizeUnsupported", true},
			"Delete": success, "Probe": success,
		},
		405: but(every(wrong), "Resize", verdict{provider.Unsupported, "ResizeUnsupported", true}),
		429: every(verdict{provider.Throttled, "ProviderThrottled", true}),
		410: every(unknown), 402: every(unknown), 418: every(unknown),
		500: every(trouble), 502: every(trouble), 504: every(trouble), 599: every(trouble),
		501: but(every(trouble), "Resize", verdict{provider.Unsupported, "ResizeUnsupported", false}),
		503: every(verdict{provider.Throttled, "ProviderUnavailable", false}),
		301: every(redirect), 302: every(redirect), 304: every(redirect), 307: every(redirect), 308: every(redirect),
		206: every(unknown), 299: every(unknown),
	} {
		switch status { // what a provider that answers may make of the probe's id
		case 400, 402, 405, 409, 410, 418, 422, 501:
			verdicts["Probe"] = success
		}
		for name, verdict := range verdicts {
			t.Run(fmt.Sprint(status, " to ", name), func(t *testing.T) {
				t.Parallel()
				err := calls[name](t, client(t, answering(status, nil, `{"error":"no"}`)))
				if verdict == success {
					if err != nil {
						t.Errorf("error = %v, want success", err)
					}
					return
				}
				if e := wantFailure(t, err, verdict.class, verdict.reason); e.Refused != verdict.refused {
					t.Errorf("Refused = %v, want %v", e.Refused, verdict.refused)
				}
			})
		}
	}
}

func TestStatusesOfSuccess(t *testing.T) {
	t.Parallel()
	for name, statuses := range map[string][]int{
		"Create": {200, 201, 202}, "Get": {200}, "Resize": {200, 202}, "Delete": {200, 202, 204, 404}, "Probe": {200, 404},
	} {
		for _, status := range statuses {
			t.Run(fmt.Sprint(status, " to ", name), func(t *testing.T) {
				t.Parallel()
				body := `{"id":"bucket-1","phase":"Active"}`
				if status == http.StatusNoContent {
					body = ""
				}
				if err := calls[name](t, client(t, answering(status, nil, body))); err != nil {
					t.Errorf("error = %v, want success", err)
				}
			})
		}
	}
}

func TestResizeNeedsNoBody(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 204} {
		bucket, err := client(t, answering(status, nil, "")).Resize(t.Context(), "bucket-1", 2)
		if err != nil || bucket.ID != "bucket-1" {
			t.Errorf("Resize answered with %d = %+v, %v, want bucket-1", status, bucket, err)
		}
	}
}

func TestRetryAfterIsTold(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		for header, after := range map[string]time.Duration{
			"":                              0,
			"7":                             7 * time.Second,
			"86400":                         time.Hour,
			"Tue, 01 Jan 2030 00:00:30 GMT": 30 * time.Second,
			"Tue, 01 Jan 2019 00:00:30 GMT": 0,
		} {
			t.Run(fmt.Sprintf("%d with %q", status, header), func(t *testing.T) {
				t.Parallel()
				url := serve(t, answering(status, map[string]string{"Retry-After": header}, ""))
				factory := newFactory(t, &httpapi.Factory{Clock: testingclock.NewFakePassiveClock(now)})
				_, err := open(t, factory, config(url)).Get(t.Context(), "bucket-1")
				if e := provider.AsError(err); e.Class != provider.Throttled || e.After != after {
					t.Errorf("error = %#v, want Throttled after %s", e, after)
				}
			})
		}
	}
}

func TestProvidersWordsAreToldWithoutTheKey(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"as they are":    `{"error":"region atlantis-1 is full"}`,
		"with the key":   `{"error":"region atlantis-1 is full, said ` + canary + `"}`,
		"encoded key":    `{"error":"region atlantis-1 is full Y2FuYXJ5L2szeStkby1ub3QtbGVhaw=="}`,
		"key kept apart": `{"error":"region atlantis-1 is full ` + strings.Replace(canary, "k3y", `k\u00003y`, 1) + `"}`,
		"as a message":   `{"message":"region atlantis-1 is full"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client(t, answering(422, nil, body)).Create(t.Context(), "key-1", want)
			e := wantFailure(t, err, provider.Terminal, "SpecRefused")
			if !strings.Contains(e.Message, "region atlantis-1 is full") || strings.Contains(e.Message, "Y2Fu") {
				t.Errorf("message = %q", e.Message)
			}
		})
	}
}

func TestBodiesThatAreNoErrorsAreNotRepeated(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"text": "internal-secret", "HTML": "<html>internal-secret</html>", "a number": `{"error":1,"x":"internal-secret"}`,
		"a list": `["internal-secret"]`, "too large": `{"error":"` + strings.Repeat("internal-secret ", 10_000) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client(t, answering(400, nil, body)).Create(t.Context(), "key-1", want)
			if e := wantFailure(t, err, provider.Terminal, "SpecRefused"); strings.Contains(e.Message, "internal-secret") {
				t.Errorf("message = %q", e.Message)
			}
		})
	}
}

func TestSameTroubleReadsTheSame(t *testing.T) {
	t.Parallel()
	url := closedPort(t)
	factory := newFactory(t, &httpapi.Factory{})
	client := open(t, factory, config(url))
	seen := map[string]bool{}
	for range 10 { // enough to open the circuit
		for _, id := range []string{"bucket-1", "bucket-2"} {
			_, err := client.Get(t.Context(), id)
			e := provider.AsError(err)
			seen[fmt.Sprint(e.Class, e.Reason, e.Message, e.Refused)] = true
		}
	}
	if len(seen) != 1 {
		t.Errorf("the same trouble reads %v", seen)
	}
}
