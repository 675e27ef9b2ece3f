package record

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"avalonhosting.example/bucketoperator/internal/egress"
)

// Client calls servers of records; server.go has their protocol. It speaks as real
// drivers do: over a connection that it keeps to itself, and once more, without a
// word, when that breaks.
type Client struct {
	dialer    *egress.Dialer
	governors *egress.Governors
	timeout   time.Duration
}

// NewClient makes a Client.
func NewClient(settings egress.Settings) *Client {
	return &Client{dialer: settings.Dialer(), governors: settings.Governors(), timeout: settings.Timeout}
}

// Target is a server as a Record reaches it.
type Target struct {
	// Record is the Record's name. Limits and circuit are its own.
	Record types.NamespacedName
	// Address is the server's host and port.
	Address string
}

func destination(record types.NamespacedName) egress.Destination {
	return egress.Destination{Namespace: record.Namespace, Name: record.Name}
}

// Value is what a server keeps under a key. The zero value is nothing.
type Value struct {
	// Version grows with each change: an older one is refused.
	Version int64
	Text    string
}

// RefusedError is that the server has refused a call.
type RefusedError struct{ Answer string }

// Error says what the answer means. It repeats nothing that a server could make up.
func (e *RefusedError) Error() string {
	switch e.Answer {
	case answerOld:
		return "the server keeps a later version of the record"
	case answerGone:
		return "the server has deleted the record for good"
	}
	return "the server's answer is none that the protocol has"
}

// unansweredError is a call without an answer. It reads the same each time.
type unansweredError struct{ cause error }

func (e *unansweredError) Error() string { return "the server of records does not answer" }

func (e *unansweredError) Unwrap() error { return e.cause }

// Get reads what is kept.
func (c *Client) Get(ctx context.Context, target Target, key string) (Value, error) {
	answer, err := c.call(ctx, target, "GET", key, "")
	if err != nil || answer == answerNone {
		return Value{}, err
	}
	words := strings.SplitN(answer, " ", 3)
	if len(words) == 3 && words[0] == answerValue {
		if version, err := strconv.ParseInt(words[1], 10, 64); err == nil {
			return Value{Version: version, Text: words[2]}, nil
		}
	}
	return Value{}, &RefusedError{Answer: answer}
}

// Put has the server keep a value. The same call again changes nothing.
func (c *Client) Put(ctx context.Context, target Target, key string, value Value) error {
	return c.order(ctx, target, "PUT", key, fmt.Sprintf(" %d %s", value.Version, value.Text))
}

// Delete has the server forget a key, for good. That it does not know it is no error.
func (c *Client) Delete(ctx context.Context, target Target, key string) error {
	return c.order(ctx, target, "DEL", key, "")
}

// Forget frees what is kept in memory for a Record.
func (c *Client) Forget(record types.NamespacedName) { c.governors.Forget(destination(record)) }

func (c *Client) order(ctx context.Context, target Target, verb, key, value string) error {
	answer, err := c.call(ctx, target, verb, key, value)
	if err == nil && answer != answerOK {
		return &RefusedError{Answer: answer}
	}
	return err
}

// call makes a call if the governor lets it. While the answer is awaited the pass
// holds no worker.
func (c *Client) call(ctx context.Context, target Target, verb, key, value string) (answer string, err error) {
	governor := c.governors.For(egress.Target{Destination: destination(target.Record), Address: target.Address})
	done, err := governor.Admit(ctx, egress.Call{Namespace: target.Record.Namespace, Name: verb + " " + key})
	if err != nil {
		return "", err
	}
	var outcome egress.Outcome
	defer func() { done(outcome) }()
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request := verb + " " + key + value + "\n"
	answer, err = c.try(bounded, target.Address, request)
	if _, refused := errors.AsType[*egress.Error](err); refused {
		return "", err
	}
	if err != nil && bounded.Err() == nil {
		answer, err = c.try(bounded, target.Address, request)
	}
	switch {
	case err == nil:
		outcome = egress.Answered()
	case ctx.Err() == nil:
		err = &unansweredError{err}
		outcome = egress.Failed(err)
	}
	return answer, err
}

// maxAnswer is longer than any answer.
const maxAnswer = 4 << 10

// try makes a call once.
func (c *Client) try(ctx context.Context, address, request string) (string, error) {
	connection, err := c.dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	if _, err := io.WriteString(connection, request); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(io.LimitReader(connection, maxAnswer)).ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}
