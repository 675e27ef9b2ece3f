package httpapi

import (
	"testing"
	"time"

	"avalonhosting.example/bucketoperator/internal/provider"
)

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"id":"bucket-1","region":"us-east-1","phase":"Active","sizeGB":1,"encrypted":true,"message":"m"}`,
		`{"id":"../x"}`, `{"id":1}`, `{"sizeGB":1e300}`, `{"ID":"a","Id":"b"}`, `[]`, ``, `null`, `<html>`, "{\"region\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, decode := range map[string]func([]byte) (provider.Bucket, error){
			"created": decodeCreated, "read": decodeRead("bucket-1"), "resized": decodeResized("bucket-1"),
		} {
			bucket, err := decode(data)
			if err != nil {
				if provider.CleanMessage(err.Error()) != err.Error() {
					t.Errorf("%s: error %q is not fit for a condition", name, err)
				}
				continue
			}
			if !provider.CheckID(bucket.ID) || bucket.SizeGB < 0 || len([]rune(bucket.Region)) > maxRegion {
				t.Errorf("%s: %q became %+v", name, data, bucket)
			}
			if bucket.Phase == "" && name != "resized" {
				t.Errorf("%s: %q became a bucket without a phase", name, data)
			}
		}
		_ = errorMessage(data)
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "120", "-1", "1.5", "99999999999999999999", "Tue, 01 Jan 2030 00:00:00 GMT", "soon", " 7 ", "+3"} {
		f.Add(seed)
	}
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		if got := retryAfter(value, now); got < 0 || got > maxRetryAfter {
			t.Errorf("retryAfter(%q) = %s", value, got)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "3600": time.Hour, "3601": time.Hour,
		"99999999999999999999": time.Hour, "-1": 0, "+3": 0, "1.5": 0, "soon": 0,
		"Tue, 01 Jan 2030 00:01:00 GMT":   time.Minute,
		"Tuesday, 01-Jan-30 00:01:00 GMT": time.Minute,
		"Tue Jan  1 00:01:00 2030":        time.Minute,
		"Wed, 02 Jan 2030 00:00:00 GMT":   time.Hour,
		"Mon, 31 Dec 2029 00:00:00 GMT":   0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", value, got, want)
		}
	}
}
