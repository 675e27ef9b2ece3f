package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"avalonhosting.example/bucketoperator/internal/provider"
)

// successes are the statuses that mean that a call was done. They are a little
// more than the protocol asks for.
var successes = map[operation][]int{
	opCreate: {http.StatusOK, http.StatusCreated, http.StatusAccepted},
	opGet:    {http.StatusOK},
	opResize: {http.StatusOK, http.StatusAccepted, http.StatusNoContent},
	opDelete: {http.StatusOK, http.StatusAccepted, http.StatusNoContent, http.StatusNotFound},
	opProbe:  {http.StatusOK, http.StatusNotFound},
}

// classify tells what an answer means; nil means that the call was done.
func (c *client) classify(r request, response *http.Response, reply reply) error {
	status := response.StatusCode
	if slices.Contains(successes[r.operation], status) || r.operation == opProbe && answers(status) {
		return nil
	}
	e := &provider.Error{Class: provider.Transient, Refused: refuses(status)}
	switch {
	case status >= 300 && status < 400:
		e.Reason = reasonRedirectRefused
		e.Message = fmt.Sprintf("the provider answered %s with a redirect%s, which is not followed: set %s to the provider's final URL",
			r, c.destination(response), c.names.Endpoint)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Class, e.Reason = provider.Unauthorized, reasonUnauthorized
		e.Message = c.unauthorized(status)
	case status == http.StatusNotFound && r.operation == opGet:
		e.Class, e.Reason = provider.NotFound, reasonNotFound
		e.Message = "the provider has no such bucket"
	case r.operation == opResize && (status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented):
		e.Class, e.Reason = provider.Unsupported, reasonUnsupported
		e.Message = fmt.Sprintf("the provider cannot resize buckets: it answered %s with %s", r, statusText(status))
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		// Not Terminal: a load balancer answers so while it knows no provider.
		e.Reason = reasonEndpointWrong
		e.Message = fmt.Sprintf("%s was answered with %s: %s, with its path, may not be that of a bucket provider", r, statusText(status), c.names.Endpoint)
	case status == http.StatusBadRequest, status == http.StatusConflict, status == http.StatusUnprocessableEntity:
		e.Class, e.Reason = provider.Terminal, reasonSpecRefused
		e.Conflict = r.operation == opCreate && status == http.StatusConflict
		e.Message = c.withWords(fmt.Sprintf("the provider refused %s with %s", r, statusText(status)), reply)
	case status == http.StatusTooManyRequests:
		e.Class, e.Reason = provider.Throttled, reasonProviderThrottled
		e.Message = "the provider asks for fewer calls"
		e.After = retryAfter(response.Header.Get("Retry-After"), c.clock.Now())
	case status == http.StatusServiceUnavailable:
		e.Class, e.Reason = provider.Throttled, reasonProviderUnavailable
		e.Message = "the provider is not available for now: it answered " + statusText(status)
		e.After = retryAfter(response.Header.Get("Retry-After"), c.clock.Now())
	case status >= 500:
		e.Reason = reasonProviderUnavailable
		e.Message = fmt.Sprintf("the provider answered %s with %s", r, statusText(status))
	default:
		e.Reason = reasonMalformedResponse
		e.Message = fmt.Sprintf("the provider answered %s with %s, which the protocol does not know", r, statusText(status))
	}
	return e
}

// answers tells whether a status shows that a provider answers and takes the
// credentials, whatever it makes of the id that a probe asks for.
func answers(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500 || status == http.StatusNotImplemented
}

// refuses tells whether a status says that nothing was done.
func refuses(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusTooManyRequests:
		return true
	default:
		return false
	}
}

func (c *client) unauthorized(status int) string {
	if c.key == "" {
		return fmt.Sprintf("the provider wants an API key (it answered %s): name a Secret with the key %s in %s",
			statusText(status), apiKeyName, c.names.SecretRef)
	}
	return fmt.Sprintf("the provider does not take the API key (it answered %s): correct the key %s of %s",
		statusText(status), apiKeyName, c.names.Secret)
}

// withWords adds the provider's own words, if it had any.
func (c *client) withWords(message string, reply reply) string {
	if words := provider.CleanMessage(errorMessage(reply.body), c.secrets...); words != "" {
		return message + ": " + words
	}
	return message
}

// destination is where a redirect leads, without its path, which is the bucket's.
func (c *client) destination(response *http.Response) string {
	location, err := url.Parse(response.Header.Get("Location"))
	if err != nil || location.Host == "" {
		return ""
	}
	return " to " + provider.CleanMessage(location.Scheme+"://"+location.Host, c.secrets...)
}

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return fmt.Sprintf("%d %s", status, text)
	}
	return fmt.Sprintf("status %d", status)
}

// malformed is an answer of success that cannot be used.
func (c *client) malformed(r request, err error) error {
	return &provider.Error{
		Class: provider.Transient, Reason: reasonMalformedResponse, Cause: err,
		Message: fmt.Sprintf("the answer to %s %s: %s may not be that of a bucket provider", r, err, c.names.Endpoint),
	}
}

func (c *client) tooLarge(r request) error {
	return &provider.Error{
		Class: provider.Transient, Reason: reasonResponseTooLarge,
		Message: fmt.Sprintf("the answer to %s is larger than %d KiB: %s may not be that of a bucket provider", r, maxBody>>10, c.names.Endpoint),
	}
}

// notSent is the error of a call that was certainly not sent.
func notSent(class provider.Class, reason, message string, cause error) *provider.Error {
	return &provider.Error{Class: class, Reason: reason, Message: message, Refused: true, Cause: cause}
}

// isTimeout tells whether an error is one of time.
func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
