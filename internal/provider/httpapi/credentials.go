package httpapi

import (
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"

	"avalonhosting.example/bucketoperator/internal/provider"
)

// apiKeyName is the key of the Secret that holds the bearer token.
const apiKeyName = "apiKey"

// maxAPIKey is what servers take in a header at least, and more than tokens have.
const maxAPIKey = 4096

// apiKey reads the bearer token; no credentials mean none. A line break at the
// end is what an editor or echo left there. Errors call the Secret by the given
// name, and never hold a value.
func apiKey(credentials map[string][]byte, secret string) (string, error) {
	if credentials == nil {
		return "", nil
	}
	value, ok := credentials[apiKeyName]
	if !ok {
		return "", secretInvalid(secret + " has no key " + apiKeyName + misspelt(credentials) + ": put the provider's API key into " + apiKeyName)
	}
	key := strings.TrimRight(string(value), "\r\n")
	switch {
	case key == "":
		return "", secretInvalid("the key " + apiKeyName + " of " + secret + " is empty: put the provider's API key there")
	case len(key) > maxAPIKey:
		return "", secretInvalid("the key " + apiKeyName + " of " + secret + " is longer than 4096 bytes: put the provider's API key there, and nothing else")
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", secretInvalid("the key " + apiKeyName + " of " + secret + " holds spaces, line breaks or characters that are not ASCII: " +
			"put the provider's API key there as it is, and nothing else")
	}
	return key, nil
}

// misspelt tells of a key that differs from the right one in its spelling alone.
// What other keys a Secret has is not told: whoever may name any Secret in a
// configuration is not to learn what is in it.
func misspelt(credentials map[string][]byte) string {
	plain := func(key string) string {
		return strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(key))
	}
	for _, key := range slices.Sorted(maps.Keys(credentials)) {
		if plain(key) == plain(apiKeyName) {
			return ", but " + key
		}
	}
	return ""
}

func secretInvalid(message string) error {
	return notSent(provider.Terminal, reasonSecretInvalid, message, nil)
}

// spellings are the forms in which a provider might repeat the token.
func spellings(key string) []string {
	if key == "" {
		return nil
	}
	raw := []byte(key)
	return []string{
		key,
		base64.StdEncoding.EncodeToString(raw),
		base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw),
		base64.RawURLEncoding.EncodeToString(raw),
		hex.EncodeToString(raw),
		url.QueryEscape(key),
		url.PathEscape(key),
	}
}
