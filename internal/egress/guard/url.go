package guard

import (
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// maxURLLength is the longest endpoint that is taken.
const maxURLLength = 2048

// urlError is an endpoint that cannot be used. It does not repeat the endpoint,
// which may hold a password, and follows what the caller calls it.
type urlError string

func (e urlError) Error() string { return string(e) }

// ErrUserinfo is the error of an endpoint that holds a user or password.
const ErrUserinfo urlError = "holds a user or password: leave them out"

// CheckURL tells, without looking up names, whether a tenant may use an
// endpoint: Parse takes it, and its host, if it is an address, passes Check.
// Addresses written in an unusual form are refused, and so is localhost unless
// loopback is allowed. Errors name the trouble and the cure, and follow the name of
// the endpoint, which is the caller's to put before them.
func CheckURL(raw string, allowLoopback bool) error {
	u, err := Parse(raw)
	if err != nil {
		return err
	}
	host := u.Hostname()
	if addr, err := netip.ParseAddr(host); err == nil {
		return Check(addr, allowLoopback)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if !allowLoopback && (name == "localhost" || strings.HasSuffix(name, ".localhost")) {
		return urlError("has the host localhost, which is the operator's own pod: " + cureLoopback)
	}
	return nil
}

// Parse reads an endpoint that may be anywhere: http or https, with a host and
// nothing but a port and a base path besides. Errors are those of CheckURL.
func Parse(raw string) (*url.URL, error) {
	if len(raw) > maxURLLength {
		return nil, urlError(fmt.Sprintf("is longer than %d characters", maxURLLength))
	}
	for _, r := range raw {
		if r <= ' ' || r > '~' {
			return nil, urlError("holds spaces, control or non-ASCII characters: write it in plain ASCII, a host name in its xn-- form")
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		// url.Parse repeats what it was given, which may hold a password.
		return nil, urlError("is not a URL such as https://buckets.example.com")
	}
	if err := checkParts(u, raw); err != nil {
		return nil, err
	}
	return u, checkHost(u)
}

func checkParts(u *url.URL, raw string) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return urlError("must begin with http:// or https://")
	case u.Opaque != "" || u.Hostname() == "":
		return urlError("has no host: write it as https://buckets.example.com")
	case u.User != nil:
		return ErrUserinfo
	case strings.Contains(raw, "?"):
		return urlError("holds a query: leave out everything from the question mark on")
	case strings.Contains(raw, "#"):
		return urlError("holds a fragment: leave out everything from the # on")
	case strings.Contains(raw, `\`):
		return urlError("holds a backslash: write slashes")
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return urlError("has a path with dots to go up or down: write the path in full")
		}
	}
	return nil
}

func checkHost(u *url.URL) error {
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return urlError("has a port that is not between 1 and 65535")
		}
	}
	host := u.Hostname()
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return urlError("has an address with a zone: write the address without it")
		}
		return nil
	}
	if strings.ContainsAny(u.Host, "[]") || endsInNumber(host) {
		return urlError("has an address in an unusual form: write the address in its usual form, such as 192.0.2.1 or [2001:db8::1]")
	}
	return checkName(host)
}

// endsInNumber tells whether a resolver might take a host for an IPv4 address,
// such as 2130706433, 0x7f.1, 0177.0.0.1 or 127.1: its last label is a number.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" {
		return true
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(last), "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// checkName refuses what no DNS name holds; percent escapes are among it.
func checkName(host string) error {
	name := strings.TrimSuffix(host, ".")
	if len(name) > 253 {
		return urlError("has a host name longer than 253 characters")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return urlError("has a host that is not a DNS name")
		}
	}
	return nil
}
