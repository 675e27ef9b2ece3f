package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func entry(stage auditv1.Stage, verb, resource, subresource string, code int32) *auditv1.Event {
	e := &auditv1.Event{Stage: stage, Verb: verb}
	e.User.Username = "somebody"
	e.ObjectRef = &auditv1.ObjectReference{Namespace: "ns", Resource: resource, Subresource: subresource}
	e.ResponseStatus = &metav1.Status{Code: code}
	return e
}

func TestEachRequestCountsOnce(t *testing.T) {
	t.Parallel()
	var all requests
	for _, e := range []*auditv1.Event{
		entry(auditv1.StageResponseStarted, "watch", "secrets", "", 200),
		entry(auditv1.StageResponseComplete, "watch", "secrets", "", 200),
		entry(auditv1.StageResponseComplete, "patch", "storagebuckets", "status", 200),
		entry(auditv1.StageResponseComplete, "patch", "storagebuckets", "", 409),
		entry(auditv1.StageResponseComplete, "patch", "bucketproviderconfigs", "status", 200),
		entry(auditv1.StageResponseComplete, "create", "events", "", 201),
		entry(auditv1.StageResponseComplete, "get", "secrets", "", 200),
		{Stage: auditv1.StageResponseComplete, Verb: "get"},
	} {
		all.add(e)
	}
	want := counts{
		Writes: 2, Events: 1, Conflicts: 1, Reads: 1,
		Requests: map[string]int{
			"watch secrets": 1, "patch storagebuckets/status": 1, "patch storagebuckets": 1,
			"patch bucketproviderconfigs/status": 1, "create events": 1, "get secrets": 1,
		},
	}
	if diff := cmp.Diff(want, countRequests(all.of("somebody", "ns"))); diff != "" {
		t.Error(diff)
	}
	if others := append(all.of("another", ""), all.of("somebody", "elsewhere")...); len(others) != 0 {
		t.Errorf("requests of others: %v", others)
	}
}

func TestLinesAreReadOnceTheyAreWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	writer, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	line, err := json.Marshal(entry(auditv1.StageResponseComplete, "get", "secrets", "", 200))
	if err != nil {
		t.Fatal(err)
	}
	log := &auditLog{file: reader, reader: bufio.NewReader(reader)}
	for _, part := range [][]byte{nil, line[:20], line[20:]} {
		if _, err := writer.Write(part); err != nil {
			t.Fatal(err)
		}
		if _, err := log.next(); !errors.Is(err, io.EOF) {
			t.Fatalf("a part of a line: %v, want io.EOF", err)
		}
	}
	if _, err := writer.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	event, err := log.next()
	if err != nil || event.ObjectRef.Resource != "secrets" {
		t.Errorf("read %v, %v", event, err)
	}
}
