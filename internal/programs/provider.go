package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"avalonhosting.example/bucketoperator/localcluster"
)

const (
	logPoll      = 20 * time.Millisecond
	startTimeout = time.Minute
)

// Provider is a mock provider, on ports of 127.0.0.1 that were free.
type Provider struct {
	// Program is its process.
	Program *localcluster.Program
	// URL is that of the protocol.
	URL string
	// Admin is that of /_mock/, which tells of buckets and calls and makes faults.
	Admin string
}

// listening are what the provider prints once it takes calls: a line with the
// URL of each of its listeners.
var listening = regexp.MustCompile(`(?m)^mockprovider listens on (http://\S+)\n.* (http://\S+)$`)

// StartProvider starts the program that Build has put into folder, and returns
// when it takes calls. What it writes is appended to the file log. When it
// fails after the start, the Provider is returned as well, to be stopped.
func StartProvider(ctx context.Context, folder, name, log string, args ...string) (*Provider, error) {
	args = append([]string{"--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"}, args...)
	program, err := localcluster.StartProgram("the "+name, folder+"/mockprovider", args, log)
	if err != nil {
		return nil, err
	}
	p := &Provider{Program: program}
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
		found := listening.FindSubmatch(text)
		if found == nil {
			return false, nil
		}
		p.URL, p.Admin = string(found[1]), string(found[2])
		return true, nil
	})
	if err != nil {
		return p, fmt.Errorf("waiting for the %s: %w", name, err)
	}
	return p, nil
}

// HostURL is the URL of the protocol with a host name in it in place of the
// address, which makes a bucket's Service an ExternalName.
func (p *Provider) HostURL() string { return strings.Replace(p.URL, "127.0.0.1", "localhost", 1) }

// Ask makes a request to what is under /_mock/, and decodes the answer's JSON
// into a value, if that is not nil.
func (p *Provider) Ask(ctx context.Context, method, what, body string, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, p.Admin+"/_mock/"+what, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking the provider for %s: %w", what, err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("asking the provider for %s: %s", what, response.Status)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the provider's answer for %s: %w", what, err)
	}
	return nil
}
