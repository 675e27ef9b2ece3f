package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"avalonhosting.example/bucketoperator/internal/controllers"
	"avalonhosting.example/bucketoperator/internal/mockprovider"
	"avalonhosting.example/bucketoperator/internal/testkit"
	"avalonhosting.example/bucketoperator/test/faults"
)

// world is the outside of a run: a mock provider.
type world struct {
	run      *faults.Execution
	setting  setting
	provider *mockprovider.Provider
	server   *httptest.Server
	url      string
	memo     map[string]string // what acts remember

	mu     sync.Mutex
	probes int
	lost   map[string]bool // ids of buckets that the scenario took away
}

func settingOf(s faults.Scenario) setting {
	setting, _ := s.Setting.(setting)
	return setting
}

func worldOf(r *faults.Execution) *world { return r.Outside.(*world) }

func open(r *faults.Execution) faults.Outside {
	setting := settingOf(r.Scenario)
	options := mockprovider.Options{ActivateAfter: setting.activateAfter}
	if !setting.noConfig {
		options.APIKeys = map[string]string{firstKey: account, probeKey: account}
	}
	mock, err := mockprovider.New(options)
	if err != nil {
		r.T.Fatalf("making the mock provider: %v", err)
	}
	server := httptest.NewServer(mock)
	return &world{run: r, setting: setting, provider: mock, server: server, url: server.URL, memo: map[string]string{}, lost: map[string]bool{}}
}

func (w *world) region() string {
	if w.setting.region != "" {
		return w.setting.region
	}
	return goodRegion
}

// Start implements faults.Outside.
func (w *world) Start(t testing.TB, life *faults.Life) faults.Operator {
	settings := testkit.Settings{
		Client: life.Config(), WrapAPI: life.API, WrapProvider: life.HTTP(name), Log: life.Log,
		Backoff: controllers.Bounds(life.Backoff), Poll: controllers.Bounds(life.Poll),
		Resync: life.Resync, CallTimeout: life.CallTimeout,
	}
	if w.setting.noConfig {
		settings.DefaultEndpoint = w.url
	}
	place := &testkit.World{Namespace: w.run.Namespace, Client: w.run.Client, Provider: w.provider, URL: w.url}
	return place.Start(t, settings)
}

// Inventory implements faults.Outside.
func (w *world) Inventory() []faults.Item {
	var items []faults.Item
	for _, bucket := range w.provider.Buckets() {
		item := faults.Item{ID: bucket.ID, Mark: bucket.Key}
		bucket.CreatedAt = bucket.CreatedAt.Truncate(0).Truncate(1 << 62)
		state, _ := json.MarshalIndent(bucket, "", "  ")
		item.State = string(state)
		items = append(items, item)
	}
	return items
}

// Tally implements faults.Outside.
func (w *world) Tally() faults.Tally {
	verbs := map[mockprovider.Operation]string{
		mockprovider.Create: http.MethodPost, mockprovider.Resize: http.MethodPatch,
		mockprovider.Delete: http.MethodDelete, mockprovider.Get: http.MethodGet,
	}
	tally := faults.Tally{Arrived: map[string]int{}, Done: map[string]int{}}
	for _, call := range w.provider.Calls() {
		tally.Arrived["provider "+verbs[call.Operation]]++
		switch call.Outcome {
		case mockprovider.Created:
			tally.Done[providerCreates]++
		case mockprovider.Deleted:
			tally.Done[providerDeletes]++
		case mockprovider.Nothing, mockprovider.Replayed, mockprovider.Found, mockprovider.Absent, mockprovider.Resized:
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	tally.Arrived["provider "+http.MethodGet] -= w.probes
	return tally
}

// Masks implements faults.Outside.
func (w *world) Masks() []string {
	_, port, _ := strings.Cut(strings.TrimPrefix(w.url, "http://"), ":")
	pairs := []string{port, "11111"}
	label := map[string]string{}
	for _, call := range w.provider.Calls() {
		if call.Outcome == mockprovider.Created {
			label[call.ID] = fmt.Sprintf("bucket-no-%d", len(label)+1)
			pairs = append(pairs, call.ID, label[call.ID])
		}
	}
	for _, bucket := range w.provider.Buckets() {
		pairs = append(pairs, bucket.Key, "key-of-"+label[bucket.ID])
	}
	if secret := w.run.Get(kindSecret, accessName); isForeign(secret) {
		for _, owner := range secret.GetOwnerReferences() {
			pairs = append(pairs, string(owner.UID), "uid-of-somebody")
		}
	}
	return pairs
}

// Close implements faults.Outside.
func (w *world) Close() { w.server.Close() }

// lose notes that the scenario takes a bucket away.
func (w *world) lose(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost[id] = true
}

func (w *world) isLost(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost[id]
}

// probe asks the provider for a bucket under its published address, as an
// application would.
func (w *world) probe(ctx context.Context, uri string) (int, error) {
	w.mu.Lock()
	w.probes++
	w.mu.Unlock()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+probeKey)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}
