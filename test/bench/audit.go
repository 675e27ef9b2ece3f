package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// auditLog reads the API server's audit log: what was really asked, whatever
// the clients believe.
type auditLog struct {
	admin  client.Client
	file   *os.File
	reader *bufio.Reader
	rest   []byte // of a line that was not written to its end yet
	fences int
}

func openAuditLog(path string, admin client.Client) (*auditLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return &auditLog{admin: admin, file: file, reader: bufio.NewReaderSize(file, 1<<20)}, nil
}

// fenceTimeout bounds the wait for a request to appear in the log.
const fenceTimeout = 30 * time.Second

// since returns the requests since the last call. They are all there: it makes
// a request of its own, and reads up to that.
func (l *auditLog) since(ctx context.Context) (requests, error) {
	l.fences++
	fence := fmt.Sprintf("bench-fence-%d", l.fences)
	err := l.admin.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: fence}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("making a mark in the audit log: %w", err)
	}
	var counted requests
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, fenceTimeout, true, func(context.Context) (bool, error) {
		for {
			event, err := l.next()
			switch {
			case errors.Is(err, io.EOF):
				return false, nil
			case err != nil:
				return false, err
			case event.ObjectRef != nil && event.ObjectRef.Name == fence:
				return true, nil
			}
			counted.add(event)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return counted, nil
}

// next is the next entry; io.EOF when there is none yet.
func (l *auditLog) next() (*auditv1.Event, error) {
	part, err := l.reader.ReadBytes('\n')
	l.rest = append(l.rest, part...)
	if err != nil {
		return nil, err
	}
	event := &auditv1.Event{}
	err = json.Unmarshal(l.rest, event)
	l.rest = l.rest[:0]
	return event, err
}

// request is what requests are counted by.
type request struct {
	User, Namespace string
	Verb, Resource  string // the resource with its subresource
	Code            int32
}

// requests are requests in the order of their answers.
type requests []request

// add counts a watch when it begins, and all else when it is answered.
func (r *requests) add(event *auditv1.Event) {
	began := auditv1.StageResponseComplete
	if event.Verb == "watch" {
		began = auditv1.StageResponseStarted
	}
	if event.Stage != began || event.ObjectRef == nil {
		return
	}
	ref := event.ObjectRef
	one := request{User: event.User.Username, Namespace: ref.Namespace, Verb: event.Verb, Resource: ref.Resource}
	if ref.Subresource != "" {
		one.Resource += "/" + ref.Subresource
	}
	if event.ResponseStatus != nil {
		one.Code = event.ResponseStatus.Code
	}
	*r = append(*r, one)
}

// of are those of a user. Empty namespace: in any.
func (r requests) of(user, namespace string) requests {
	var picked requests
	for _, one := range r {
		if one.User == user && (namespace == "" || one.Namespace == namespace) {
			picked = append(picked, one)
		}
	}
	return picked
}

// count counts those for which match is true.
func (r requests) count(match func(request) bool) int {
	n := 0
	for _, one := range r {
		if match(one) {
			n++
		}
	}
	return n
}

// byKind counts by verb and resource, such as "patch storagebuckets/status".
func (r requests) byKind() map[string]int {
	kinds := map[string]int{}
	for _, one := range r {
		kinds[one.Verb+" "+one.Resource]++
	}
	return kinds
}

// isWrite leaves out events, which are a figure of their own, and the writes to
// the namespace's few configurations, which are not the buckets'.
func isWrite(one request) bool {
	return mutates(one) && one.Resource != "events" && !strings.HasPrefix(one.Resource, "bucketproviderconfigs")
}

func isEvent(one request) bool { return mutates(one) && one.Resource == "events" }

func isConflict(one request) bool { return one.Code == 409 }

func isRead(one request) bool { return one.Verb == "get" || one.Verb == "list" }

func mutates(one request) bool {
	switch one.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}
