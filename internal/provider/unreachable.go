package provider

import "errors"

// ErrUnreachable is among the causes of an Error when the provider could not
// be reached, or did not answer in time. It is what opens a Governor's circuit.
// An answer that tells of an error is an answer.
var ErrUnreachable = errors.New("the provider was not reached")
