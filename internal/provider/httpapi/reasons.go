package httpapi

import "avalonhosting.example/bucketoperator/internal/provider"

// The reasons of this package's errors. They end up in conditions.
const (
	reasonEndpointInvalid     = "EndpointInvalid"          // spec.endpoint is no URL that can be used
	reasonEndpointRefused     = "EndpointRefused"          // spec.endpoint leads where a tenant may not go
	reasonEndpointWrong       = "EndpointWrong"            // something answers there, but it has no /buckets
	reasonRedirectRefused     = "RedirectRefused"          // the provider sends elsewhere
	reasonSecretInvalid       = "SecretInvalid"            // the Secret holds no usable apiKey
	reasonUnauthorized        = "Unauthorized"             // the provider does not take the apiKey
	reasonCertificateInvalid  = "CertificateInvalid"       // the provider's certificate is not valid for it
	reasonHandshakeFailed     = "HandshakeFailed"          // no TLS connection could be agreed on
	reasonProviderUnavailable = "ProviderUnavailable"      // no answer, or one that tells of trouble
	reasonProviderThrottled   = "ProviderThrottled"        // the provider wants fewer calls
	reasonSpecRefused         = provider.ReasonSpecRefused // the provider does not take this spec
	reasonKeyInvalid          = "IdempotencyKeyInvalid"    // the key cannot be sent
	reasonIDInvalid           = "IDInvalid"                // the id is not one that a provider can have given
	reasonNotFound            = "BucketNotFound"           // there is no such bucket
	reasonUnsupported         = "ResizeUnsupported"        // the provider cannot resize
	reasonMalformedResponse   = "MalformedResponse"        // the answer is not of the protocol
	reasonResponseTooLarge    = "ResponseTooLarge"         // the answer is too large to be of the protocol
	reasonCanceled            = "Canceled"                 // the caller gave up
)
