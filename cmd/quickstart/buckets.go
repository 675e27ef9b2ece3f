package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"avalonhosting.example/bucketoperator/internal/programs"
)

// bucketsURL lists what the provider has, by way of its admin API.
func bucketsURL(p *programs.Provider) string { return p.Admin + "/_mock/buckets" }

// bucketsOf returns that list: as it is, and how long it is.
func bucketsOf(ctx context.Context, p *programs.Provider) (text string, count int, err error) {
	var list json.RawMessage
	if err := p.Ask(ctx, http.MethodGet, "buckets", "", &list); err != nil {
		return "", 0, err
	}
	var buckets []json.RawMessage
	if err := json.Unmarshal(list, &buckets); err != nil {
		return "", 0, err
	}
	return strings.TrimSpace(string(list)), len(buckets), nil
}
