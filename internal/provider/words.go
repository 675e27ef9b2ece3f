package provider

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// maxListed is how many names a message lists.
	maxListed = 5
	// maxListedName is how much of each: enough to know it by.
	maxListedName = 63
)

// List lists names in a message: sorted, so that the same names read the same,
// and no more of them than a person reads.
func List(names []string) string {
	names = slices.Sorted(slices.Values(names))
	more := ""
	if len(names) > maxListed {
		names, more = names[:maxListed], fmt.Sprintf(" and %d more", len(names)-maxListed)
	}
	for i, name := range names {
		if len(name) > maxListedName {
			names[i] = name[:maxListedName] + "..."
		}
	}
	return strings.Join(names, ", ") + more
}
