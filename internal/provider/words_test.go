package provider

import (
	"slices"
	"strings"
	"testing"
)

func TestList(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		names []string
		want  string
	}{
		"none":            {nil, ""},
		"one":             {[]string{"a"}, "a"},
		"sorted":          {[]string{"b", "a"}, "a, b"},
		"as many as fit":  {[]string{"e", "d", "c", "b", "a"}, "a, b, c, d, e"},
		"more":            {[]string{"g", "f", "e", "d", "c", "b", "a"}, "a, b, c, d, e and 2 more"},
		"one that is cut": {[]string{long, "b"}, long[1:] + "..., b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := slices.Clone(tc.names)
			if got := List(tc.names); got != tc.want {
				t.Errorf("List(%q) = %q, want %q", tc.names, got, tc.want)
			}
			if !slices.Equal(given, tc.names) {
				t.Errorf("the names became %q", tc.names)
			}
		})
	}
}
