package provider

import (
	"regexp"
	"strings"
	"unicode"
)

// MaxIDLength is the longest id that is taken from a provider.
const MaxIDLength = 128

// maxMessageLength bounds what of a provider's words ends up in a condition.
const maxMessageLength = 256

var idPattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?$`)

// CheckID tells whether an id that a provider gave may be kept and put into a
// path: letters, digits, '.', '_', ':' and '-', beginning and ending with a
// letter or digit, at most MaxIDLength, without "..".
func CheckID(id string) bool {
	return len(id) <= MaxIDLength && idPattern.MatchString(id) && !strings.Contains(id, "..")
}

// CleanMessage makes words of a provider fit for a condition: one line of
// printable characters, bounded in length, with "[redacted]" in the place of
// each of the secrets.
func CleanMessage(s string, secrets ...string) string {
	s = strings.ToValidUTF8(s, "")
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	// After dropping characters, which may have kept a secret apart.
	return redact(s, secrets)
}

// redact puts "[redacted]" in the place of each run of secrets, and cuts the
// result. It makes no more than that: a short secret may be all that there is in
// a long text.
func redact(s string, secrets []string) string {
	var out []rune
	secretUntil := 0
	for i, r := range s {
		until := secretUntil
		for _, secret := range secrets {
			if secret != "" && strings.HasPrefix(s[i:], secret) {
				until = max(until, i+len(secret))
			}
		}
		switch {
		case until <= i:
			out = append(out, r)
		case secretUntil < i || i == 0: // else the run of secrets goes on
			out = append(out, []rune("[redacted]")...)
		}
		secretUntil = until
		if len(out) > maxMessageLength {
			return string(out[:maxMessageLength-1]) + "…"
		}
	}
	return string(out)
}
