package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Port is a side of the operator: what it speaks to. Its value is how effects
// there are named.
type Port string

const (
	// API is the API server.
	API Port = ""
	// HTTP is an HTTP provider.
	HTTP Port = "provider"
	// S3 is an object store.
	S3 Port = "s3"
	// SQL is a database.
	SQL Port = "sql"
	// DNS is a name server.
	DNS Port = "dns"
	// Redis is a cache.
	Redis Port = "redis"
)

// Effect identifies a request of the operator in a way that is the same in each
// run: by what it does to what, and the how many-eth of its like it is.
type Effect struct {
	// Port is where it goes.
	Port Port
	// Verb is what it does: for API and HTTP the HTTP method, elsewhere a
	// statement's or command's first word.
	Verb string
	// Kind is the kind of thing that it does it to: a resource, a table.
	Kind string
	// Key is which one of them: the object's name and the subresource. Ids that the
	// outside gave are masked. It may be empty.
	Key string
	// Occurrence counts the effects that are the same in all else, from 1.
	Occurrence int
}

// Target is what the effect is about.
func (e Effect) Target() string {
	if e.Key == "" {
		return e.Kind
	}
	return e.Kind + "/" + e.Key
}

// Name is the effect without its occurrence.
func (e Effect) Name() string {
	name := e.Verb + " " + e.Target()
	if e.Port != API {
		name = string(e.Port) + " " + name
	}
	return name
}

// String is the effect's name in plans and traces.
func (e Effect) String() string { return fmt.Sprintf("%s#%d", e.Name(), e.Occurrence) }

// Call is a request as a port's protocol reads it.
type Call struct {
	// Effect has no port and no occurrence yet.
	Effect Effect
	// Read is true when it changes nothing.
	Read bool
	// Mark is the owner's mark that it bears, if any.
	Mark string
}

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
		name = MetadataOf(body).Name
	}
	if sub != "" {
		name += "/" + sub
	}
	return kind, Effect{Verb: request.Method, Kind: resource, Key: name}
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

// Metadata is what the harness reads of any object, patch or delete options.
type Metadata struct {
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

// MetadataOf reads an object's metadata; all is empty if there is none.
func MetadataOf(body []byte) Metadata {
	var object struct {
		Metadata Metadata `json:"metadata"`
	}
	if json.Unmarshal(body, &object) != nil {
		return Metadata{}
	}
	return object.Metadata
}

// metadataFrom is what MetadataOf reads of the object's JSON, as far as a mark
// may be made of it.
func metadataFrom(object client.Object) Metadata {
	return Metadata{Name: object.GetName(), UID: string(object.GetUID()), Annotations: object.GetAnnotations(), Finalizers: object.GetFinalizers()}
}
