package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"avalonhosting.example/bucketoperator/internal/provider"
)

// maxRegion is the longest region that fits a StorageBucket's status.
const maxRegion = 63

type createBody struct {
	Region    string `json:"region"`
	SizeGB    int32  `json:"sizeGB"`
	Encrypted bool   `json:"encrypted"`
}

type resizeBody struct {
	SizeGB int32 `json:"sizeGB"`
}

// bucketBody is a bucket in an answer. Other fields are ignored.
type bucketBody struct {
	ID        string `json:"id"`
	Phase     string `json:"phase"`
	Region    string `json:"region"`
	SizeGB    int32  `json:"sizeGB"`
	Encrypted *bool  `json:"encrypted"`
	Message   string `json:"message"`
}

// decodeCreated reads the answer to a create call. All that matters is the id:
// without it the bucket that was just made is lost. Whatever else is wrong
// shows when the bucket is read.
func decodeCreated(data []byte) (provider.Bucket, error) {
	body, err := decodeBucket(data)
	if err == nil {
		var bucket provider.Bucket
		if bucket, err = body.bucket(); err == nil && bucket.ID != "" {
			if bucket.Phase == "" {
				bucket.Phase = provider.Provisioning
			}
			return bucket, nil
		}
	}
	var only struct {
		ID string `json:"id"`
	}
	if idErr := json.Unmarshal(data, &only); idErr != nil {
		return provider.Bucket{}, err
	}
	if only.ID == "" {
		return provider.Bucket{}, errors.New("has no id")
	}
	if !provider.CheckID(only.ID) {
		return provider.Bucket{}, errIDUnusable
	}
	return provider.Bucket{ID: only.ID, Phase: provider.Provisioning}, nil
}

// decodeRead reads the answer to a get call for the bucket id.
func decodeRead(id string) func([]byte) (provider.Bucket, error) {
	return func(data []byte) (provider.Bucket, error) {
		bucket, err := decodeFor(id, data)
		if err != nil {
			return provider.Bucket{}, err
		}
		if bucket.Phase == "" {
			return provider.Bucket{}, errors.New("has no phase")
		}
		return bucket, nil
	}
}

// decodeResized reads the answer to a resize call for the bucket id. The
// protocol asks for no body here.
func decodeResized(id string) func([]byte) (provider.Bucket, error) {
	return func(data []byte) (provider.Bucket, error) {
		if len(bytes.TrimSpace(data)) == 0 {
			return provider.Bucket{ID: id}, nil
		}
		return decodeFor(id, data)
	}
}

func decodeFor(id string, data []byte) (provider.Bucket, error) {
	body, err := decodeBucket(data)
	if err != nil {
		return provider.Bucket{}, err
	}
	bucket, err := body.bucket()
	if err != nil {
		return provider.Bucket{}, err
	}
	if bucket.ID != "" && bucket.ID != id {
		return provider.Bucket{}, errors.New("tells of another bucket than the one that was asked for")
	}
	bucket.ID = id
	return bucket, nil
}

var errIDUnusable = fmt.Errorf("has an id that is not at most %d letters, digits, '.', '_', ':' and '-'", provider.MaxIDLength)

// decodeBucket reads a JSON object. Errors do not repeat what the provider sent.
func decodeBucket(data []byte) (bucketBody, error) {
	trimmed := bytes.TrimSpace(data)
	switch {
	case len(trimmed) == 0:
		return bucketBody{}, errors.New("is empty")
	case strings.HasPrefix(http.DetectContentType(trimmed), "text/html"):
		return bucketBody{}, errors.New("is an HTML page")
	case trimmed[0] != '{':
		return bucketBody{}, errors.New("is not a JSON object")
	}
	var body bucketBody
	err := json.Unmarshal(trimmed, &body)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		return bucketBody{}, fmt.Errorf("has a field %s that is of another type or out of range", wrongType.Field)
	case err != nil:
		return bucketBody{}, errors.New("is not valid JSON")
	}
	return body, nil
}

// bucket checks the fields that are there.
func (b bucketBody) bucket() (provider.Bucket, error) {
	phase := provider.Phase(b.Phase)
	switch {
	case b.ID != "" && !provider.CheckID(b.ID):
		return provider.Bucket{}, errIDUnusable
	case phase != "" && phase != provider.Provisioning && phase != provider.Active && phase != provider.Failed:
		return provider.Bucket{}, errors.New("has a phase that is not Provisioning, Active or Failed")
	case utf8.RuneCountInString(b.Region) > maxRegion || strings.ContainsFunc(b.Region, isUnprintable):
		return provider.Bucket{}, fmt.Errorf("has a region that is not at most %d printable characters", maxRegion)
	case b.SizeGB < 0:
		return provider.Bucket{}, errors.New("has a sizeGB below 0")
	}
	return provider.Bucket{
		ID: b.ID, Phase: phase, Region: b.Region, SizeGB: b.SizeGB, Encrypted: b.Encrypted, Message: b.Message,
	}, nil
}

func isUnprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// errorMessage is what a refusal's body says, if it is JSON with an error or a
// message. Nothing else is repeated: what answers may not be a provider.
func errorMessage(data []byte) string {
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
	}
	if err := json.Unmarshal(data, &body); err != nil {
		return ""
	}
	for _, raw := range []json.RawMessage{body.Error, body.Message} {
		var text string
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
	}
	return ""
}
