package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"avalonhosting.example/bucketoperator/localcluster"
)

const (
	poll         = 20 * time.Millisecond
	startTimeout = time.Minute
)

// bucketProvider is a mock provider.
type bucketProvider struct {
	program *localcluster.Program
	port    string // of the protocol
	admin   string // the URL of /_mock/
}

func (w *world) startProvider(ctx context.Context, name string, args ...string) (*bucketProvider, error) {
	log := w.log(name)
	args = append([]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--activate-after=0"}, args...)
	program, err := localcluster.StartProgram("the "+name, w.file("mockprovider"), args, log)
	if err != nil {
		return nil, err
	}
	p := &bucketProvider{program: program}
	err = wait.PollUntilContextTimeout(ctx, poll, startTimeout, true, func(context.Context) (bool, error) {
		if err := running(program); err != nil {
			return false, err
		}
		urls, err := printedURLs(log)
		if err != nil || len(urls) < 2 {
			return false, err
		}
		p.port, p.admin = urls[0][strings.LastIndex(urls[0], ":")+1:], urls[1]
		return true, nil
	})
	if err != nil {
		return p, fmt.Errorf("waiting for the %s: %w", name, err)
	}
	return p, nil
}

// printedURLs are the URLs that end the whole lines of a file.
func printedURLs(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var urls []string
	lines := bufio.NewScanner(strings.NewReader(string(text[:strings.LastIndexByte(string(text), '\n')+1])))
	for lines.Scan() {
		if at := strings.LastIndex(lines.Text(), "http://"); at >= 0 {
			urls = append(urls, lines.Text()[at:])
		}
	}
	return urls, lines.Err()
}

// running is an error once the program has ended.
func running(program *localcluster.Program) error {
	select {
	case <-program.Ended():
		return program.Err()
	default:
		return nil
	}
}

// endpoint is the provider's URL. By its host name, so that a bucket's Service
// is an ExternalName.
func (p *bucketProvider) endpoint() string { return "http://localhost:" + p.port }

// hang lets all calls hang from now on.
func (p *bucketProvider) hang(ctx context.Context) error {
	return p.ask(ctx, http.MethodPost, "faults", `{"hang": true}`, nil)
}

// forget begins to count calls from 0.
func (p *bucketProvider) forget(ctx context.Context) error {
	return p.ask(ctx, http.MethodDelete, "calls", "", nil)
}

// calls are the calls since the last forget, by operation.
func (p *bucketProvider) calls(ctx context.Context) (map[string]int, error) {
	var answer struct {
		Counts map[string]int `json:"counts"`
	}
	err := p.ask(ctx, http.MethodGet, "calls", "", &answer)
	return answer.Counts, err
}

func (p *bucketProvider) ask(ctx context.Context, method, what, body string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, p.admin+"/_mock/"+what, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the provider: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("asking the provider for %s: %s", what, response.Status)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the provider's answer: %w", err)
	}
	return nil
}
