package provider

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
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
	// After dropping characters, which may have kept a secret apart; before
	// cutting, which may leave half of one.
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	if utf8.RuneCountInString(s) > maxMessageLength {
		s = string([]rune(s)[:maxMessageLength-1]) + "…"
	}
	return s
}
