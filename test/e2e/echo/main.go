// Command echo is a workload for tests of the network: on port 8080 it answers
// with its host name, and at /ask?url=URL with what another answers, whatever its
// status; with status 502 if there is no answer.
package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// askTimeout is short: a network that is cut gives no answer at all.
const askTimeout = 2 * time.Second

func main() {
	server := &http.Server{Addr: ":8080", Handler: handler(), ReadHeaderTimeout: askTimeout}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		name, err := os.Hostname()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, name)
	})
	mux.HandleFunc("GET /ask", ask)
	return mux
}

// ask makes a new connection each time: one kept open would not see a change of
// the network.
func ask(w http.ResponseWriter, r *http.Request) {
	client := &http.Client{Timeout: askTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.URL.Query().Get("url"), nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := client.Do(request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	_, _ = io.Copy(w, answer.Body) // whoever asked sees that it is cut short
}
