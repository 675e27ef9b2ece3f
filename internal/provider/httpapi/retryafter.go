package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest that a provider can make its callers stay away.
const maxRetryAfter = time.Hour

// retryAfter reads a Retry-After header, seconds or a date; 0 when it says
// nothing that can be understood.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter // digits only, so too large a number
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxRetryAfter)
}
