package mockprovider

import "time"

// Phase is where a bucket is in its life.
type Phase string

const (
	// Provisioning means that the bucket is still being made.
	Provisioning Phase = "Provisioning"
	// Active means that the bucket can be used.
	Active Phase = "Active"
	// Failed means that the bucket was given up.
	Failed Phase = "Failed"
)

// Bucket is a bucket that the Provider has.
type Bucket struct {
	// ID is what the protocol calls the bucket.
	ID string `json:"id"`
	// Account is whose bucket it is; empty where calls need no token.
	Account string `json:"account,omitempty"`
	// Key is the idempotency key of the call that made it, if it had one.
	Key string `json:"key,omitempty"`
	// Region is where it is.
	Region string `json:"region"`
	// SizeGB is its size in gigabytes; 0 in a minimal provider.
	SizeGB int32 `json:"sizeGB,omitempty"`
	// Encrypted is whether it is encrypted at rest.
	Encrypted bool `json:"encrypted,omitempty"`
	// Phase is where it is in its life.
	Phase Phase `json:"phase,omitempty"`
	// Message explains the phase. May be empty.
	Message string `json:"message,omitempty"`
	// CreatedAt is when it was made.
	CreatedAt time.Time `json:"createdAt"`
}
