package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/net/http/httpguts"
	"k8s.io/utils/clock"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// probeID is asked for by Probe. No provider gives it: see docs/http-provider.md.
const probeID = "bucketoperator-probe"

type client struct {
	base      *url.URL
	names     provider.Names
	key       string   // the bearer token; empty for none
	secrets   []string // what must not be in an error
	transport http.RoundTripper
	governor  *egress.Governor
	namespace string // whom the calls are made for
	timeout   time.Duration
	clock     clock.PassiveClock
	observe   func(operation, code string, seconds float64)
}

// operation is one of the calls, as it is called in metrics.
type operation string

const (
	opCreate operation = "create"
	opGet    operation = "get"
	opResize operation = "resize"
	opDelete operation = "delete"
	opProbe  operation = "probe"
)

// request is a call to make.
type request struct {
	operation operation
	method    string
	id        string // of the bucket; empty for all buckets
	key       string // the idempotency key; empty for none
	body      any    // nil for none
}

// String names the request, without what changes from bucket to bucket, so
// that a message made of it is the same for all.
func (r request) String() string {
	if r.id == "" {
		return r.method + " /buckets"
	}
	return r.method + " /buckets/{id}"
}

func (c *client) Create(ctx context.Context, key string, want provider.Spec) (provider.Bucket, error) {
	r := request{operation: opCreate, method: http.MethodPost, key: key, body: createBody{
		Region: want.Region, SizeGB: want.SizeGB, Encrypted: want.Encrypted,
	}}
	reply, err := c.do(ctx, r)
	if err != nil {
		return provider.Bucket{}, err
	}
	return c.check(r, reply, decodeCreated)
}

func (c *client) Get(ctx context.Context, id string) (provider.Bucket, error) {
	r := request{operation: opGet, method: http.MethodGet, id: id}
	reply, err := c.do(ctx, r)
	if err != nil {
		return provider.Bucket{}, err
	}
	return c.check(r, reply, decodeRead(id))
}

func (c *client) Resize(ctx context.Context, id string, sizeGB int32) (provider.Bucket, error) {
	r := request{operation: opResize, method: http.MethodPatch, id: id, body: resizeBody{SizeGB: sizeGB}}
	reply, err := c.do(ctx, r)
	if err != nil {
		return provider.Bucket{}, err
	}
	return c.check(r, reply, decodeResized(id))
}

func (c *client) Delete(ctx context.Context, id string) error {
	_, err := c.do(ctx, request{operation: opDelete, method: http.MethodDelete, id: id})
	return err
}

func (c *client) Probe(ctx context.Context) error {
	_, err := c.do(ctx, request{operation: opProbe, method: http.MethodGet, id: probeID})
	return err
}

// reply is an answer that tells of success.
type reply struct {
	body     []byte
	tooLarge bool
}

// check makes a Bucket of a reply, or an error that says what is wrong with it.
func (c *client) check(r request, reply reply, decode func([]byte) (provider.Bucket, error)) (provider.Bucket, error) {
	if reply.tooLarge {
		return provider.Bucket{}, c.tooLarge(r)
	}
	bucket, err := decode(reply.body)
	if err != nil {
		return provider.Bucket{}, c.malformed(r, err)
	}
	bucket.Message = provider.CleanMessage(bucket.Message, c.secrets...)
	return bucket, nil
}

// do makes a call if the governor lets it, and tells how it went.
func (c *client) do(ctx context.Context, r request) (result reply, err error) {
	if !httpguts.ValidHeaderFieldValue(r.key) {
		return reply{}, notSent(provider.Terminal, reasonKeyInvalid, "the idempotency key is not one that can be sent", nil)
	}
	if r.operation != opCreate && !provider.CheckID(r.id) {
		return reply{}, notSent(provider.Terminal, reasonIDInvalid, "the bucket's id is not one that a provider can have given", nil)
	}
	done, err := c.governor.Admit(ctx, egress.Call{Namespace: c.namespace, Name: r.method + " " + r.id + " " + r.key})
	if err != nil {
		refused := provider.NotAdmitted(err)
		c.observe(string(r.operation), refusedCode(refused), 0)
		return reply{}, refused
	}
	start, outcome := c.clock.Now(), egress.Outcome{}
	defer func() { done(outcome) }() // also when a panic goes by
	var code string
	result, code, err = c.send(ctx, r)
	c.observe(string(r.operation), code, c.clock.Since(start).Seconds())
	outcome = provider.OutcomeOf(err)
	return result, err
}

// send makes the call. The code is for the metric.
func (c *client) send(ctx context.Context, r request) (result reply, code string, err error) {
	callCtx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	progress := &progress{}
	httpRequest, err := c.httpRequest(progress.trace(callCtx), r)
	if err != nil {
		return reply{}, codeError, notSent(provider.Terminal, reasonEndpointInvalid, "no request can be made for "+c.names.Endpoint, err)
	}
	// RoundTrip, unlike http.Client, follows no redirects, which might lead past
	// the guard and take the token along.
	response, err := c.transport.RoundTrip(httpRequest)
	if err != nil {
		err := c.notAnswered(ctx, progress, err)
		return reply{}, codeOf(err), err
	}
	result, err = readReply(response)
	if err != nil {
		err := c.notAnswered(ctx, progress, err)
		return reply{}, codeOf(err), err
	}
	return result, statusCode(response.StatusCode), c.classify(r, response, result)
}

func (c *client) httpRequest(ctx context.Context, r request) (*http.Request, error) {
	target := c.base.JoinPath("buckets")
	if r.id != "" {
		target = target.JoinPath(url.PathEscape(r.id))
	}
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, fmt.Errorf("encoding the body: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, r.method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "bucketoperator")
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
		// net/http repeats by itself, on another connection, a request that it
		// thinks idempotent, as the header below makes it, when the connection that
		// it had kept turns out to be closed. Where the provider ignores that header
		// this would make a second bucket. Without GetBody it cannot.
		request.GetBody = nil
	}
	if r.key != "" {
		request.Header.Set("Idempotency-Key", r.key)
	}
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	return request, nil
}

const (
	codeError     = "error"
	codeTimeout   = "timeout"
	codeThrottled = "throttled"
)

// refusedCode is the metric's code for a call that the governor did not allow.
func refusedCode(err error) string {
	if errors.Is(err, provider.ErrThrottled) {
		return codeThrottled
	}
	return codeError
}

// codeOf is the metric's code for a call without an answer.
func codeOf(err error) string {
	if isTimeout(err) {
		return codeTimeout
	}
	return codeError
}

// statusCode bounds what a provider can make of a label's value.
func statusCode(status int) string {
	if http.StatusText(status) == "" {
		return "other"
	}
	return strconv.Itoa(status)
}
