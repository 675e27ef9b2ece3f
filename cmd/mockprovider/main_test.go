package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadFlagsEndInOneLine(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("s3cret and too much\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"unknown":           {"--bogus"},
		"no duration":       {"--latency", "soon"},
		"below 0":           {"--activate-after=-1s"},
		"an argument":       {"serve"},
		"no regions":        {"--regions", ","},
		"no such key file":  {"--api-key-file", keys + "-absent"},
		"a bad key file":    {"--api-key-file", keys},
		"a bad address":     {"--listen", "127.0.0.1:99999"},
		"a bad admin one":   {"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:99999"},
		"a file not to use": {"--file", filepath.Join(keys, "buckets.json")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stderr bytes.Buffer
			if code := run(t.Context(), args, io.Discard, &stderr); code == 0 {
				t.Error("exit code 0")
			}
			said := stderr.String()
			if !strings.HasPrefix(said, "mockprovider: ") || strings.Count(said, "\n") != 1 || strings.Contains(said, "s3cret") {
				t.Errorf("said %q, want one line", said)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, io.Discard, &stderr); code != 0 || !strings.Contains(stderr.String(), "-activate-after") {
		t.Errorf("exit code %d, said %q", code, &stderr)
	}
}

func TestServesUntilToldToEnd(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("key-a\n\nkey-b team-b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	out, stdout := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--api-key-file", keys}, stdout, io.Discard)
	}()
	lines := bufio.NewScanner(out)
	url := func() string {
		if !lines.Scan() {
			t.Fatalf("no line: %v", lines.Err())
		}
		_, url, _ := strings.Cut(lines.Text(), "http://")
		return "http://" + url
	}
	protocol, admin := url(), url()
	for target, want := range map[string]int{
		protocol + "/buckets/bucket-1": http.StatusUnauthorized,
		protocol + "/_mock/buckets":    http.StatusUnauthorized,
		admin + "/_mock/buckets":       http.StatusOK,
		admin + "/buckets/bucket-1":    http.StatusNotFound,
	} {
		if got := status(t, target); got != want {
			t.Errorf("GET %s = %d, want %d", target, got, want)
		}
	}
	end()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}
