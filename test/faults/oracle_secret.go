package faults

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
)

// nothingTold: the provider's keys are in nothing that the operator sends to the
// API server or logs, in no Kubernetes Event and in no object but the Secret.
func nothingTold(r *run) []string {
	var found []string
	look := func(where, text string) {
		for _, canary := range canaries {
			if strings.Contains(text, canary) {
				found = append(found, "a key is in "+where)
				return
			}
		}
	}
	for _, event := range r.gate.trace() {
		if !event.Effect.Provider {
			look("what was sent: "+event.Effect.String(), string(event.Request)+event.Path)
		}
	}
	for _, body := range r.gate.eventBodies() {
		look("a Kubernetes Event", string(body))
	}
	for _, line := range r.log.all() {
		look("the log: "+strings.NewReplacer(firstKey, "FIRST-KEY", secondKey, "SECOND-KEY").Replace(line), line)
	}
	for _, revision := range r.recorder.revisions() {
		if revision.Kind == kindBucket || revision.Kind == kindConfig {
			look(revision.Kind+" "+revision.Object.GetName(), plain(r, revision.Kind, revision.Object))
		}
	}
	return found
}

// canaries are the keys in the forms in which they could be told.
var canaries = func() []string {
	var forms []string
	for _, key := range []string{firstKey, secondKey} {
		raw := []byte(key)
		forms = append(forms, key, hex.EncodeToString(raw), url.QueryEscape(key),
			base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw))
	}
	return forms
}()

// cleanLog: no panic ever, and no error without a fault.
func cleanLog(r *run) []string {
	var found []string
	for _, line := range r.log.all() {
		if strings.Contains(line, "panic") {
			found = append(found, line)
		}
	}
	if r.plan.faultless() {
		for _, line := range r.log.errors() {
			if !strings.Contains(line, "caches to sync") { // stopped before it was up: the harness is quicker than that
				found = append(found, line)
			}
		}
	}
	return found
}
