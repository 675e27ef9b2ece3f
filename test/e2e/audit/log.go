// Package audit reads an API server's audit log and compares what a ServiceAccount
// asked for with what its roles grant: a role is exact when nothing was
// forbidden, and nothing in it was left unused.
package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is one answered request.
type Request struct {
	// User is who asked, such as system:serviceaccount:ns:name.
	User string
	// Pod is the pod that asked, where the API server knows it from the token.
	Pod string
	// Verb is the API verb: get, list, watch, create, update, patch, delete, deletecollection.
	Verb string
	// Group, Resource (with its subresource after a slash), Namespace and Name
	// are those of the object; all empty where Path is not one's.
	Group, Resource, Namespace, Name string
	// Path is the URL's, without the query.
	Path string
	// Code is the HTTP status of the answer.
	Code int
	// Denied tells whether the request was refused for want of a right. Not every
	// 403 is that: nothing can be made in a namespace that is being deleted.
	Denied bool
	// Received is when the request came.
	Received time.Time
}

// String is the request on one line, for a person.
func (r Request) String() string {
	what := r.Path
	if r.Resource != "" {
		what = fmt.Sprintf("%s %s/%s", qualified(r.Group, r.Resource), r.Namespace, r.Name)
	}
	return fmt.Sprintf("%s %s (%d) by %s", r.Verb, what, r.Code, r.User)
}

// Writes tells whether the request changes something.
func (r Request) Writes() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// decision is the annotation with what authorization said.
const decision = "authorization.k8s.io/decision"

// podExtra is where the API server puts the name of the pod that a token is bound to.
const podExtra = "authentication.kubernetes.io/pod-name"

// longestLine is more than an event at level Metadata can be.
const longestLine = 4 << 20

// Read returns the requests of an audit log, JSON objects one a line, in the
// order in which they were answered. A line that is not whole yet ends it.
func Read(log io.Reader) ([]Request, error) {
	var requests []Request
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var event auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			if !lines.Scan() {
				break
			}
			return nil, fmt.Errorf("reading an audit event: %w", err)
		}
		if event.Stage != auditv1.StageResponseComplete && event.Stage != auditv1.StageResponseStarted {
			continue
		}
		if event.Stage == auditv1.StageResponseStarted && event.Verb != "watch" {
			continue // its completion follows
		}
		requests = append(requests, requestOf(&event))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return requests, nil
}

func requestOf(event *auditv1.Event) Request {
	r := Request{User: event.User.Username, Verb: event.Verb, Path: path(event.RequestURI), Received: event.RequestReceivedTimestamp.Time}
	if pods := event.User.Extra[podExtra]; len(pods) > 0 {
		r.Pod = pods[0]
	}
	if ref := event.ObjectRef; ref != nil {
		r.Group, r.Resource, r.Namespace, r.Name = ref.APIGroup, ref.Resource, ref.Namespace, ref.Name
		if ref.Subresource != "" {
			r.Resource += "/" + ref.Subresource
		}
	}
	if event.ResponseStatus != nil {
		r.Code = int(event.ResponseStatus.Code)
	}
	r.Denied = event.Annotations[decision] == "forbid"
	return r
}

func path(uri string) string {
	for i := range uri {
		if uri[i] == '?' {
			return uri[:i]
		}
	}
	return uri
}

func qualified(group, resource string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}
