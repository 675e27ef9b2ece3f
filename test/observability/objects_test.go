package observability_test

import (
	"net/http/httptest"
	"testing"

	"avalonhosting.example/bucketoperator/internal/mockprovider"
)

// serve serves a provider until the test's end, and returns its URL.
func serve(t *testing.T, provider *mockprovider.Provider) string {
	t.Helper()
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	return server.URL
}
