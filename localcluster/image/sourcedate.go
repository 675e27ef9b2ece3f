package image

import (
	"fmt"
	"strconv"
	"time"
)

// SourceDate reads the value of SOURCE_DATE_EPOCH: the time, in seconds since
// 1970, that everything made from a source should bear. An empty value means
// 1970. See https://reproducible-builds.org/specs/source-date-epoch/.
func SourceDate(value string) (time.Time, error) {
	if value == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, which is no number of seconds since 1970", value)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
