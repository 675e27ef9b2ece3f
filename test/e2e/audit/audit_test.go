package audit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"avalonhosting.example/bucketoperator/test/e2e/audit"
)

const operator = "system:serviceaccount:ns:operator"

const log = `{"stage":"RequestReceived","verb":"get","requestURI":"/api","user":{"username":"system:serviceaccount:ns:operator"}}
{"stage":"ResponseStarted","verb":"watch","requestURI":"/api/v1/secrets?watch=1","user":{"username":"system:serviceaccount:ns:operator"},"objectRef":{"resource":"secrets","apiVersion":"v1"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","requestURI":"/apis/g/v1/namespaces/a/things/t/status","user":{"username":"system:serviceaccount:ns:operator","extra":{"authentication.kubernetes.io/pod-name":["operator-1"]}},"objectRef":{"resource":"things","subresource":"status","apiGroup":"g","namespace":"a","name":"t"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"delete","requestURI":"/apis/g/v1/namespaces/a/things/t","user":{"username":"system:serviceaccount:ns:operator"},"objectRef":{"resource":"things","apiGroup":"g","namespace":"a","name":"t"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}
{"stage":"ResponseComplete","verb":"delete","requestURI":"/apis/g/v1/namespaces/a/things/t","user":{"username":"somebody"},"objectRef":{"resource":"things","apiGroup":"g","namespace":"a","name":"t"},"responseStatus":{"code":403}}
{"stage":"ResponseComplete","verb":"get","requestURI":"/metrics","user":{"username":"system:serviceaccount:ns:operator"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","requestURI":"/apis/g/v1/namespaces/b/things","user":{"username":"system:serviceaccount:ns:operator"},"objectRef":{"resource":"things","apiGroup":"g","namespace":"b"},"responseStatus":{"code":403},"annotations":{"authorization.k8s.io/decision":"allow"}}
{"stage":"ResponseCom`

func TestReadTakesEachAnsweredRequestOnce(t *testing.T) {
	t.Parallel()
	requests, err := audit.Read(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	want := []audit.Request{
		{User: operator, Verb: "watch", Resource: "secrets", Path: "/api/v1/secrets", Code: 200},
		{User: operator, Pod: "operator-1", Verb: "patch", Group: "g", Resource: "things/status", Namespace: "a", Name: "t", Path: "/apis/g/v1/namespaces/a/things/t/status", Code: 200},
		{User: operator, Verb: "delete", Group: "g", Resource: "things", Namespace: "a", Name: "t", Path: "/apis/g/v1/namespaces/a/things/t", Code: 403, Denied: true},
		{User: "somebody", Verb: "delete", Group: "g", Resource: "things", Namespace: "a", Name: "t", Path: "/apis/g/v1/namespaces/a/things/t", Code: 403},
		{User: operator, Verb: "get", Path: "/metrics", Code: 200},
		{User: operator, Verb: "create", Group: "g", Resource: "things", Namespace: "b", Path: "/apis/g/v1/namespaces/b/things", Code: 403}, // it is going
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if denied := audit.Denied(requests, operator); len(denied) != 1 || denied[0] != want[2] {
		t.Errorf("Denied = %v, want %v", denied, want[2])
	}
}

func TestReadRefusesALogThatIsBrokenInTheMiddle(t *testing.T) {
	t.Parallel()
	if _, err := audit.Read(strings.NewReader("{\"stage\":\n{}\n")); err == nil {
		t.Error("a broken line was taken for the end")
	}
}

func TestUnusedNamesEachVerbThatNobodyUsed(t *testing.T) {
	t.Parallel()
	requests, err := audit.Read(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	grants := audit.Grants("role", "", []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"watch", "list"}},
		{APIGroups: []string{"g"}, Resources: []string{"things", "things/status"}, Verbs: []string{"patch", "delete"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	})
	grants = append(grants, audit.Grants("local", "b", []rbacv1.PolicyRule{
		{APIGroups: []string{"g"}, Resources: []string{"things/status"}, ResourceNames: []string{"t", "u"}, Verbs: []string{"patch"}},
	})...)
	var unused []string
	for _, g := range audit.Unused(grants, requests, operator) {
		unused = append(unused, g.String())
	}
	want := []string{
		"local: patch things/status.g/t", // in another namespace
		"local: patch things/status.g/u",
		"role: delete things.g", // was forbidden
		"role: delete things/status.g",
		"role: list secrets",
		"role: patch things.g",
	}
	if diff := cmp.Diff(want, unused); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
