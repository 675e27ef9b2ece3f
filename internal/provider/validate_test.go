package provider

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestCheckID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"bucket-482913": true, "a": true, "A.b_c:d-e9": true, strings.Repeat("a", MaxIDLength): true,
		"": false, "-a": false, "a-": false, "a/b": false, "a..b": false, "..": false, ".": false, "a b": false,
		"a\n": false, "a%2fb": false, "ä": false, "a?b": false, "a#b": false, `a\b`: false, "a\x00b": false,
		strings.Repeat("a", MaxIDLength+1): false,
	} {
		if got := CheckID(id); got != want {
			t.Errorf("CheckID(%q) = %v, want %v", id, got, want)
		}
	}
}

func TestCleanMessage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in      string
		secrets []string
		want    string
	}{
		"plain words stay":                    {in: "the region is full", want: "the region is full"},
		"lines become one":                    {in: " a\r\n\tb\u2028c ", want: "a b c"},
		"escape sequences go":                 {in: "\x1b[31mred\x00", want: "[31mred"},
		"broken UTF-8 goes":                   {in: "a\xffb", want: "ab"},
		"direction marks go":                  {in: "a\u202eb", want: "ab"},
		"a secret goes":                       {in: "key s3cret is bad", secrets: []string{"s3cret"}, want: "key [redacted] is bad"},
		"a secret kept apart goes":            {in: "s3\x00cr\u200bet", secrets: []string{"s3cret"}, want: "[redacted]"},
		"an empty secret is none":             {in: "abc", secrets: []string{""}, want: "abc"},
		"secrets in a row are one":            {in: "key eeee is bad", secrets: []string{"e"}, want: "k[redacted]y [redacted] is bad"},
		"secrets that overlap go whole":       {in: "<abcd>", secrets: []string{"abc", "bcd"}, want: "<[redacted]>"},
		"a secret of many bytes goes":         {in: "é ключ ü", secrets: []string{"ключ"}, want: "é [redacted] ü"},
		"a secret where it is cut goes whole": {in: strings.Repeat("a", 250) + "s3cret" + strings.Repeat("b", 99), secrets: []string{"s3cret"}, want: strings.Repeat("a", 250) + "[reda…"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := CleanMessage(test.in, test.secrets...); got != test.want {
				t.Errorf("CleanMessage(%q) = %q, want %q", test.in, got, test.want)
			}
		})
	}
}

// A hostile provider's answer, of which there may be a hundred at a time, must not
// grow: it may be nothing but a short secret, which its configuration chooses.
func TestCleanMessageMakesLittleOfALongText(t *testing.T) {
	for name, in := range map[string]string{"a row": strings.Repeat("e", 64<<10), "apart": strings.Repeat("e.", 32<<10)} {
		result := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				CleanMessage(in, "e")
			}
		})
		if got := result.AllocedBytesPerOp(); got > 512<<10 {
			t.Errorf("%s: CleanMessage takes %d KiB for 64 KiB", name, got>>10)
		}
	}
}

func FuzzCheckIDIsSafeInAPath(f *testing.F) {
	for _, seed := range []string{"bucket-1", "a..b", "../x", "a%2f", "a:b", "", "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if CheckID(id) && (len(id) > MaxIDLength || strings.ContainsAny(id, "/\\%?# \r\n") || strings.Contains(id, "..") || id == "") {
			t.Errorf("CheckID takes %q", id)
		}
	})
}

func FuzzCleanMessage(f *testing.F) {
	f.Add("a s3cret b", "s3cret")
	f.Add("\x1b[0m\xff\u202e", "x")
	f.Fuzz(func(t *testing.T, in, secret string) {
		got := CleanMessage(in, secret)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > maxMessageLength || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("CleanMessage(%q) = %q", in, got)
		}
	})
}
