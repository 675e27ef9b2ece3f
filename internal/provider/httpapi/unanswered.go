package httpapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/egress/guard"
	"avalonhosting.example/bucketoperator/internal/provider"
)

// notAnswered is the error of a call that got no answer. ctx is the caller's.
func (c *client) notAnswered(ctx context.Context, progress *progress, err error) error {
	refused := !progress.sent()
	cause := &quiet{err: err, secrets: c.secrets}
	if ctxErr := ctx.Err(); ctxErr != nil {
		return &provider.Error{
			Class: provider.Transient, Reason: reasonCanceled, Refused: refused, Cause: ctxErr,
			Message: "the call to the provider was given up",
		}
	}
	if egress.IsFenced(err) {
		fenced := provider.NotAdmitted(err)
		fenced.Refused = refused
		return fenced
	}
	if notAllowed, ok := errors.AsType[*guard.RefusedError](err); ok {
		return notSent(provider.Transient, reasonEndpointRefused, refusal(notAllowed, c.names), cause)
	}
	if message := c.certificateTrouble(err); message != "" {
		return notSent(provider.Transient, reasonCertificateInvalid, message, cause)
	}
	if _, failed := errors.AsType[*egress.HandshakeError](err); failed && !isTimeout(err) {
		return notSent(provider.Transient, reasonHandshakeFailed,
			fmt.Sprintf("no TLS connection could be made with %s: it must speak TLS 1.2 or later, or %s must begin with http://",
				c.base.Host, c.names.Endpoint), cause)
	}
	message := c.noConnection(err)
	if !refused {
		message = c.noAnswer(err)
	}
	return &provider.Error{
		Class: provider.Transient, Reason: reasonProviderUnavailable, Refused: refused, Message: message,
		Cause: fmt.Errorf("%w: %w", provider.ErrUnreachable, cause),
	}
}

// certificateTrouble says what is wrong with a certificate; empty if nothing is.
func (c *client) certificateTrouble(err error) string {
	var (
		verification *tls.CertificateVerificationError
		wrongHost    x509.HostnameError
		unknown      x509.UnknownAuthorityError
		invalid      x509.CertificateInvalidError
	)
	host := c.base.Hostname()
	switch {
	case errors.As(err, &wrongHost):
		return fmt.Sprintf("the provider's certificate is not for %s: correct the host in %s or the certificate", host, c.names.Endpoint)
	case errors.As(err, &unknown):
		return fmt.Sprintf("the certificate of %s is signed by an authority that the operator does not know: "+
			"use one of a known authority, or add the authority to those that the operator trusts, which takes no restart", host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of %s has expired or is not valid yet: renew it", host)
	case errors.As(err, &invalid), errors.As(err, &verification):
		return fmt.Sprintf("the certificate of %s is not valid: renew it", host)
	}
	return ""
}

// noConnection says why the provider was not reached, in words that are the
// same each time.
func (c *client) noConnection(err error) string {
	host := c.base.Host
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("there is no host %s: check %s", c.base.Hostname(), c.names.Endpoint)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host name %s could not be looked up", c.base.Hostname())
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("connecting to %s was refused: check that the provider runs and listens there, and the host and port in %s", host, c.names.Endpoint)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Sprintf("there is no route to %s", host)
	case isTimeout(err):
		return fmt.Sprintf("connecting to %s took too long", host)
	default:
		return fmt.Sprintf("connecting to %s failed", host)
	}
}

func (c *client) noAnswer(err error) string {
	if isTimeout(err) {
		return fmt.Sprintf("%s did not answer within %s", c.base.Host, c.timeout)
	}
	return fmt.Sprintf("the connection to %s broke before the answer was complete", c.base.Host)
}

// quiet is an error without secrets: a provider may put the token that it was
// sent into a broken answer, which net/http then repeats.
type quiet struct {
	err     error
	secrets []string
}

func (q *quiet) Error() string { return provider.CleanMessage(q.err.Error(), q.secrets...) }

func (q *quiet) Unwrap() error { return q.err }
