package faults

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
)

// nothingTold: the canaries are in nothing that the operator sends to the
// API server or logs, in no Kubernetes Event and in no object but the Secret.
func nothingTold(r *Execution) []string {
	var found []string
	canaries := formsOf(r.adapter.Canaries)
	look := func(where, text string) {
		for _, canary := range canaries {
			if strings.Contains(text, canary) {
				found = append(found, "a key is in "+where)
				return
			}
		}
	}
	for _, event := range r.gate.trace() {
		if !event.Outside() {
			look("what was sent: "+event.Effect.String(), string(event.Request)+event.Path)
		}
	}
	for _, body := range r.gate.eventBodies() {
		look("a Kubernetes Event", string(body))
	}
	var masked []string
	for i, form := range canaries {
		masked = append(masked, form, fmt.Sprintf("CANARY-%d", i))
	}
	for _, line := range r.log.all() {
		look("the log: "+strings.NewReplacer(masked...).Replace(line), line)
	}
	for _, revision := range r.recorder.revisions() {
		if revision.Resource != secrets {
			look(revision.Resource+" "+revision.Object.GetName(), plain(r, revision.Resource, revision.Object))
		}
	}
	return found
}

// formsOf are secrets in the forms in which they could be told.
func formsOf(canaries []string) []string {
	var forms []string
	for _, canary := range canaries {
		raw := []byte(canary)
		forms = append(forms, canary, hex.EncodeToString(raw), url.QueryEscape(canary),
			base64.RawStdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw))
	}
	return forms
}

// cleanLog: no panic ever, and no error without a fault.
func cleanLog(r *Execution) []string {
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
