package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"avalonhosting.example/bucketoperator/localcluster"
)

const (
	logPoll      = 50 * time.Millisecond
	startTimeout = time.Minute
)

// bucketProvider is the mock provider, on ports that were free.
type bucketProvider struct {
	program *localcluster.Program
	// url is that of the protocol, admin that of /_mock/.
	url, admin string
}

// providerURLs are what the mock provider prints once it takes calls: a line
// with the URL of each of its listeners.
var providerURLs = regexp.MustCompile(`(?m)^mockprovider listens on (http://\S+)\n.* (http://\S+)$`)

func startProvider(ctx context.Context, o options, f *folder) (*bucketProvider, error) {
	args := []string{
		"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0",
		"--activate-after=" + o.activateAfter.String(), fmt.Sprintf("--minimal=%t", o.minimal),
	}
	log := f.file("mockprovider.log")
	program, err := localcluster.StartProgram("the provider", f.file("mockprovider"), args, log)
	if err != nil {
		return nil, err
	}
	p := &bucketProvider{program: program}
	err = wait.PollUntilContextTimeout(ctx, logPoll, startTimeout, true, func(context.Context) (bool, error) {
		select {
		case <-program.Ended():
			return false, program.Err()
		default:
		}
		text, err := os.ReadFile(log)
		if err != nil {
			return false, err
		}
		found := providerURLs.FindSubmatch(text)
		if found == nil {
			return false, nil
		}
		p.url, p.admin = string(found[1]), string(found[2])
		return true, nil
	})
	if err != nil {
		return p, fmt.Errorf("waiting for the provider: %w", err)
	}
	return p, nil
}

// bucketsURL lists what the provider has, by way of its admin API.
func (p *bucketProvider) bucketsURL() string { return p.admin + "/_mock/buckets" }

// buckets returns that list: as it is, and how long it is.
func (p *bucketProvider) buckets(ctx context.Context) (text string, count int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.bucketsURL(), http.NoBody)
	if err != nil {
		return "", 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", 0, fmt.Errorf("asking the provider for its buckets: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", 0, fmt.Errorf("asking the provider for its buckets: %w", err)
	}
	var buckets []json.RawMessage
	if err := json.Unmarshal(body, &buckets); err != nil {
		return "", 0, fmt.Errorf("reading the provider's buckets: %w", err)
	}
	return strings.TrimSpace(string(body)), len(buckets), nil
}
