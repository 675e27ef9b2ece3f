package httpapi_test

import (
	"crypto/x509"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"avalonhosting.example/bucketoperator/internal/egress"
	"avalonhosting.example/bucketoperator/internal/provider"
	"avalonhosting.example/bucketoperator/internal/provider/httpapi"
)

// A message is read on a StorageBucket, which has neither endpoint nor Secret.
func TestMessagesCallTheConfigurationAsTheyWereTold(t *testing.T) {
	t.Parallel()
	names := provider.Names{Endpoint: "the endpoint of acme", SecretRef: "the secretRef of acme", Secret: "Secret key (of acme)"}
	tls := httptest.NewUnstartedServer(nil)
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	t.Cleanup(tls.Close)
	roots := x509.NewCertPool()
	roots.AddCert(tls.Certificate())
	answer := func(status int, body string) string { return serve(t, answering(status, nil, body)) }
	keys := func(names ...string) map[string][]byte {
		credentials := map[string][]byte{}
		for _, name := range names {
			credentials[name] = []byte(canary)
		}
		return credentials
	}
	for name, tc := range map[string]struct {
		endpoint    string
		credentials map[string][]byte
		tenants     bool
		lookedUp    string
		want        string
	}{
		"an endpoint that is none":  {endpoint: "ftp://a", want: "the endpoint of acme must begin with http:// or https://"},
		"an endpoint not allowed":   {endpoint: "http://169.254.169.254", tenants: true, want: "the endpoint of acme leads to 169.254.169.254"},
		"a name that leads there":   {endpoint: "http://a.test:1", tenants: true, lookedUp: "169.254.169.254", want: "the endpoint of acme leads to 169.254.169.254"},
		"no such host":              {endpoint: "http://a.test", want: "there is no host a.test: check the endpoint of acme"},
		"nobody listens":            {endpoint: closedPort(t), want: "was refused: check that the provider runs and listens there, and the host and port in the endpoint of acme"},
		"no TLS":                    {endpoint: strings.Replace(answer(200, ""), "http:", "https:", 1), want: "or the endpoint of acme must begin with http://"},
		"another's certificate":     {endpoint: strings.Replace(tls.URL, "127.0.0.1", "a.test", 1), lookedUp: "127.0.0.1", want: "correct the host in the endpoint of acme or"},
		"no bucket provider":        {endpoint: answer(405, ""), want: "the endpoint of acme, with its path, may not be that of a bucket provider"},
		"a redirect":                {endpoint: answer(307, ""), want: "set the endpoint of acme to the provider's final URL"},
		"another protocol":          {endpoint: answer(200, "<html>"), want: "the endpoint of acme may not be that of a bucket provider"},
		"too large an answer":       {endpoint: answer(200, strings.Repeat(" ", 1<<20)), want: "the endpoint of acme may not be that of a bucket provider"},
		"a key that is not taken":   {endpoint: answer(401, ""), credentials: keys("apiKey"), want: "correct the key apiKey of Secret key (of acme)"},
		"a key that is missing":     {endpoint: answer(401, ""), want: "name a Secret with the key apiKey in the secretRef of acme"},
		"a Secret without keys":     {credentials: keys(), want: "Secret key (of acme) has no key apiKey: put the provider's API key into apiKey"},
		"a misspelt key":            {credentials: keys("apikey"), want: "Secret key (of acme) has no key apiKey, but apikey: put"},
		"another misspelt key":      {credentials: keys("canary", "API_KEY"), want: "Secret key (of acme) has no key apiKey, but API_KEY: put"},
		"other keys are not told":   {credentials: keys("canary"), want: "Secret key (of acme) has no key apiKey: put"},
		"an empty key":              {credentials: map[string][]byte{"apiKey": nil}, want: "the key apiKey of Secret key (of acme) is empty"},
		"a key that is too long":    {credentials: map[string][]byte{"apiKey": []byte(strings.Repeat("a", 5000))}, want: "the key apiKey of Secret key (of acme) is longer"},
		"a key that cannot be sent": {credentials: map[string][]byte{"apiKey": []byte("a b")}, want: "the key apiKey of Secret key (of acme) holds"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.endpoint == "" {
				tc.endpoint = "https://buckets.example.com"
			}
			config := provider.Config{Endpoint: tc.endpoint, Trusted: !tc.tenants, Credentials: tc.credentials, Names: names}
			factory := newFactory(t, &httpapi.Factory{Resolver: resolverFor(t, tc.lookedUp), Egress: egress.Settings{Roots: egress.FixedRoots(roots)}})
			client, err := factory.Open(config)
			if err == nil {
				_, err = client.Create(t.Context(), "key-1", want)
			}
			e := provider.AsError(err)
			_ = wantFailure(t, err, e.Class, e.Reason)
			if !strings.Contains(e.Message, tc.want) || strings.HasPrefix(e.Message, "spec.") {
				t.Errorf("message = %q, want %q", e.Message, tc.want)
			}
		})
	}
}
