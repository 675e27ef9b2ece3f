package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Effect identifies a request of the operator in a way that is the same in each
// run: by what it does to what, and the how many-eth of its like it is.
type Effect struct {
	// Provider is true for a call to the provider, false for one to the API server.
	Provider bool
	// Verb is the HTTP method.
	Verb string
	// Target is what the request is about: the resource, the object's name and
	// the subresource. Ids that the provider gave are masked.
	Target string
	// Occurrence counts the effects that are the same in all else, from 1.
	Occurrence int
}

// Key is the effect without its occurrence.
func (e Effect) Key() string {
	if e.Provider {
		return "provider " + e.Verb + " " + e.Target
	}
	return e.Verb + " " + e.Target
}

// String is the effect's name in plans and traces.
func (e Effect) String() string { return fmt.Sprintf("%s#%d", e.Key(), e.Occurrence) }

// class says what the gate makes of a request.
type class int

const (
	classOther  class = iota // discovery, informers' lists, leases, reviews: not the operator's decisions
	classWatch               // an informer's stream
	classEvent               // a Kubernetes Event: counted apart
	classRead                // a read that a decision hangs on
	classEffect              // it changes something
)

// classifyAPI takes a request to the API server apart.
func classifyAPI(request *http.Request, body []byte) (class, Effect) {
	resource, name, sub := splitPath(request.URL.Path)
	query := request.URL.Query()
	switch {
	case resource == "", resource == "leases", strings.HasSuffix(resource, "reviews"):
		return classOther, Effect{}
	case query.Get("watch") == "true":
		return classWatch, Effect{}
	case resource == "events":
		return classEvent, Effect{}
	}
	kind := classEffect
	if request.Method == http.MethodGet {
		if name == "" && query.Has("resourceVersion") {
			return classOther, Effect{} // an informer's
		}
		kind = classRead
	}
	if request.Method == http.MethodPost && name == "" {
		name = metadataOf(body).Name
	}
	var target strings.Builder
	target.WriteString(resource)
	for _, part := range []string{name, sub} {
		if part != "" {
			target.WriteString("/" + part)
		}
	}
	return kind, Effect{Verb: request.Method, Target: target.String()}
}

// splitPath takes the path of a namespaced resource apart. The resource is empty
// for any other path.
func splitPath(path string) (resource, name, sub string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at := slices.Index(parts, "namespaces")
	if at < 0 {
		if n := len(parts); n > 2 && (parts[0] == "api" && n == 3 || parts[0] == "apis" && n == 4) {
			return parts[n-1], "", ""
		}
		return "", "", ""
	}
	parts = append(parts[at+1:], "", "", "", "")
	return parts[1], parts[2], parts[3]
}

// classifyProvider takes a call to the provider apart.
func classifyProvider(request *http.Request) (class, Effect) {
	target := "buckets"
	if !strings.HasSuffix(strings.TrimRight(request.URL.Path, "/"), "/buckets") {
		target = "buckets/{id}"
		if strings.HasSuffix(request.URL.Path, "-probe") {
			target = "buckets/{probe}"
		}
	}
	kind := classEffect
	if request.Method == http.MethodGet {
		kind = classRead
	}
	return kind, Effect{Provider: true, Verb: request.Method, Target: target}
}

// metadata is what the harness reads of any object, patch or delete options.
type metadata struct {
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
	ResourceVersion   string            `json:"resourceVersion"`
	DeletionTimestamp *string           `json:"deletionTimestamp"`
	Finalizers        []string          `json:"finalizers"`
	Annotations       map[string]string `json:"annotations"`
	OwnerReferences   []struct {
		UID        string `json:"uid"`
		Controller bool   `json:"controller"`
	} `json:"ownerReferences"`
}

// metadataOf reads an object's metadata; all is empty if there is none.
func metadataOf(body []byte) metadata {
	var object struct {
		Metadata metadata `json:"metadata"`
	}
	if json.Unmarshal(body, &object) != nil {
		return metadata{}
	}
	return object.Metadata
}
