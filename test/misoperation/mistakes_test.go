package misoperation_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mistake is one thing that somebody does to an object.
type mistake struct {
	// path is the field that it is done to.
	path string
	// what says what is done.
	what string
	// value is the field's new value; removed leaves the field out.
	value any
}

type removedField struct{}

var removed = removedField{}

func (m mistake) String() string { return m.path + " " + m.what }

// in does it to an object.
func (m mistake) in(object *unstructured.Unstructured) error {
	fields := strings.Split(m.path, ".")
	if m.value == removed {
		unstructured.RemoveNestedField(object.Object, fields...)
		return nil
	}
	return unstructured.SetNestedField(object.Object, m.value, fields...)
}

// injections are texts that mean something to somebody down the line.
var injections = map[string]string{
	"SQL":              `"; DROP TABLE buckets; --`,
	"a quote":          `' OR 1=1`,
	"a command":        "$(id)",
	"a template":       "{{.}}",
	"a format":         "%s%n",
	"a way up":         "../../other",
	"an escaped slash": "a%2fb",
	"a second setting": "a b=c",
	"a second line":    "a\nadmin: true",
	"a second header":  "a\r\nX-Evil: 1",
	"a script":         "<script>alert(1)</script>",
	"an expression":    "${jndi:ldap://127.0.0.1/a}",
}

// texts are strings that are seldom what a field is for.
var texts = map[string]string{
	"empty":                  "",
	"a blank":                " ",
	"one letter":             "a",
	"a NUL":                  "a\x00b",
	"an escape":              "a\x1b[31m",
	"right to left":          "a\u202eb",
	"an emoji":               "🪣",
	"a hyphen first":         "-a",
	"a hyphen last":          "a-",
	"a dot first":            ".a",
	"two dots":               "a..b",
	"a capital":              "Abc",
	"a digit first":          "1a",
	"blanks around":          " a ",
	"the word null":          "null",
	"the word true":          "true",
	"a number":               "0",
	"63 letters":             strings.Repeat("a", 63),
	"64 letters":             strings.Repeat("a", 64),
	"253 letters":            strings.Repeat("a", 253),
	"254 letters":            strings.Repeat("a", 254),
	"64 KiB":                 strings.Repeat("a", 64<<10),
	"64 KiB of line breaks":  strings.Repeat("\n", 64<<10),
	"a name in a namespace":  "other/acme",
	"a name with its domain": "acme.example.com",
}

// numbers are integers that are seldom what a field is for.
var numbers = map[string]int64{
	"0": 0, "1": 1, "-1": -1, "2^31-1": 1<<31 - 1, "2^31": 1 << 31, "-2^31": -1 << 31, "2^53+1": 1<<53 + 1, "2^63-1": 1<<63 - 1, "-2^63": -1 << 63,
}

// typed is a value of each JSON type.
var typed = map[string]any{
	"string": "a", "integer": int64(1), "number": 1.5, "boolean": true, "array": []any{"a"}, "object": map[string]any{"a": "b"},
}

// endpoints are URLs that lead astray, and some that do not.
var endpoints = map[string]string{
	"a decimal address":          "http://2130706433:8080",
	"a hexadecimal address":      "http://0x7f000001",
	"an octal address":           "http://0177.0.0.1",
	"a short address":            "http://127.1",
	"the metadata service":       "http://169.254.169.254/latest/meta-data",
	"the metadata service, IPv6": "http://[fd00:ec2::254]",
	"a mapped address":           "http://[::ffff:169.254.169.254]",
	"a translated address":       "http://[64:ff9b::a9fe:a9fe]",
	"a link-local address":       "http://[fe80::1]",
	"a zone":                     "http://[fe80::1%25eth0]",
	"the unspecified address":    "http://0.0.0.0:1",
	"a multicast address":        "http://224.0.0.1",
	"broadcast":                  "http://255.255.255.255",
	"a user":                     "http://user@127.0.0.1:1",
	"a password":                 "http://user:secret@127.0.0.1:1",
	"a user that looks a host":   "http://buckets.example.com@169.254.169.254",
	"javascript":                 "javascript:alert(1)",
	"a file":                     "file:///etc/passwd",
	"data":                       "data:text/plain,a",
	"gopher":                     "gopher://127.0.0.1:1",
	"a second header":            "http://127.0.0.1:1/\r\nX-Evil: 1",
	"a second header, escaped":   "http://127.0.0.1:1/%0d%0aX-Evil:1",
	"a query":                    "http://127.0.0.1:1/?a=b",
	"a fragment":                 "http://127.0.0.1:1/#a",
	"a way up":                   "http://127.0.0.1:1/../../",
	"an escaped way up":          "http://127.0.0.1:1/%2e%2e/",
	"a backslash":                `http://127.0.0.1:1\@169.254.169.254`,
	"port 0":                     "http://127.0.0.1:0",
	"port 65536":                 "http://127.0.0.1:65536",
	"a port of letters":          "http://127.0.0.1:http",
	"a closed port":              "http://127.0.0.1:1",
	"a closed port, IPv6":        "http://[::1]:1",
	"no host":                    "http://:8080",
	"no scheme":                  "127.0.0.1:1",
	"no such host":               "http://no-such-host.invalid",
	"capitals":                   "HTTP://127.0.0.1:1",
	"digits of another script":   "http://１２７.0.0.1",
	"an empty label":             "http://a..b",
	"2049 characters":            "http://127.0.0.1:1/" + strings.Repeat("a", 2049-19),
	"2048 characters":            "http://127.0.0.1:1/" + strings.Repeat("a", 2048-19),
}

// intervals are durations in forms that somebody may try.
var intervals = map[string]string{
	"0s": "0s", "1ns": "1ns", "-1s": "-1s", "999ms": "999ms", "1s": "1s", "24h": "24h", "24h1s": "24h1s", "1d": "1d", "292 years": "2562047h", "1.5h": "1.5h", "P1D": "P1D", "1e3s": "1e3s",
}

// mistakesIn generates the mistakes of a spec from its schema, always in the same order.
func mistakesIn(spec schema) []mistake {
	var all []mistake
	walk(spec, "spec", func(path string, node schema) {
		add := func(what string, value any) { all = append(all, mistake{path: path, what: what, value: value}) }
		add("removed", removed)
		add("null", nil)
		for _, other := range sortedKeys(typed) {
			if other != node.Type && (node.Type != "number" || other != "integer") {
				add("of type "+other, typed[other])
			}
		}
		switch node.Type {
		case "object":
			add("empty", map[string]any{})
			all = append(all, mistake{path: path + ".unheardOf", what: "added", value: "a"})
		case "string":
			values := stringsFor(path, node)
			for _, what := range sortedKeys(values) {
				add(what, values[what])
			}
		case "integer":
			values := numbersFor(node)
			for _, what := range sortedKeys(values) {
				add(what, values[what])
			}
		case "boolean":
			add("true", true)
			add("false", false)
		}
	})
	return all
}

func stringsFor(path string, node schema) map[string]string {
	found := maps.Clone(texts)
	for what, value := range injections {
		found["holding "+what] = value
	}
	if node.MaxLength != nil {
		found["as long as may be"] = strings.Repeat("a", int(*node.MaxLength))
		found["longer than may be"] = strings.Repeat("a", int(*node.MaxLength)+1)
	}
	for _, member := range node.Enum {
		var value string
		if err := json.Unmarshal(member.Raw, &value); err != nil {
			panic(fmt.Sprintf("%s has an enum of other than strings: %v", path, err))
		}
		found["being "+value] = value
		found["being "+value+" in capitals"] = strings.ToUpper(value)
		found["being "+value+" in lower case"] = strings.ToLower(value)
		found["being "+value+" and more"] = value + "s"
	}
	if strings.HasSuffix(path, ".endpoint") {
		for what, value := range endpoints {
			found["being "+what] = value
		}
	}
	if strings.HasSuffix(path, "Interval") {
		for what, value := range intervals {
			found["being "+what] = value
		}
	}
	return found
}

func numbersFor(node schema) map[string]int64 {
	found := maps.Clone(numbers)
	for name, bound := range map[string]*float64{"the least": node.Minimum, "the most": node.Maximum} {
		if bound != nil {
			for by := int64(-1); by <= 1; by++ {
				found[fmt.Sprintf("%s%+d", name, by)] = int64(*bound) + by
			}
		}
	}
	return found
}
