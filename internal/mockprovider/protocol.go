package mockprovider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// bucketBody is a bucket in an answer.
type bucketBody struct {
	ID        string `json:"id"`
	Region    string `json:"region"`
	Phase     Phase  `json:"phase"`
	SizeGB    int32  `json:"sizeGB,omitempty"`
	Encrypted *bool  `json:"encrypted,omitempty"`
	Message   string `json:"message,omitempty"`
}

func (p *Provider) body(b Bucket) bucketBody {
	b = p.present(b)
	if p.options.Minimal {
		return bucketBody{ID: b.ID, Region: b.Region, Phase: b.Phase}
	}
	return bucketBody{
		ID: b.ID, Region: b.Region, Phase: b.Phase,
		SizeGB: b.SizeGB, Encrypted: &b.Encrypted, Message: b.Message,
	}
}

// createBody is what a create call asks for. A minimal provider does not even
// look at what else there is.
type createBody struct {
	Region    string `json:"region"`
	SizeGB    int32  `json:"sizeGB"`
	Encrypted bool   `json:"encrypted"`
}

func (p *Provider) create(r *http.Request, account string, body []byte) answer {
	want, err := p.decodeCreate(body)
	if err != nil {
		return refusal(http.StatusBadRequest, err.Error())
	}
	if message := p.refuse(want); message != "" {
		return refusal(http.StatusUnprocessableEntity, message)
	}
	var key string
	if !p.options.Minimal {
		key = r.Header.Get("Idempotency-Key")
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if record, known := p.store.keys[keyID{account, key}]; known {
		return p.replay(record, want)
	}
	made, err := p.store.insert(Bucket{
		Account: account, Key: key, Region: want.Region, SizeGB: p.sizeOf(want.SizeGB), Encrypted: want.Encrypted,
		CreatedAt: p.clock.Now(),
	})
	if err != nil {
		return refusal(http.StatusInternalServerError, err.Error())
	}
	return answer{status: http.StatusCreated, body: p.body(made), outcome: Created, id: made.ID}
}

func (p *Provider) decodeCreate(body []byte) (createBody, error) {
	var want createBody
	if p.options.Minimal {
		var regionOnly struct {
			Region string `json:"region"`
		}
		err := decode(body, &regionOnly)
		return createBody{Region: regionOnly.Region}, err
	}
	err := decode(body, &want)
	return want, err
}

func decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the body is not the JSON that this call takes: %w", err)
	}
	return nil
}

// sizeOf is the size of a bucket that is to have so many GB.
func (p *Provider) sizeOf(wantGB int32) int32 {
	step := max(p.options.SizeStep, 1)
	return (wantGB + step - 1) / step * step
}

// refuse is why there can be no such bucket; empty when there can.
func (p *Provider) refuse(want createBody) string {
	switch {
	case !slices.Contains(p.options.Regions, want.Region):
		return fmt.Sprintf("region %q is not one of %s", want.Region, strings.Join(p.options.Regions, ", "))
	case !p.options.Minimal && (want.SizeGB < 1 || want.SizeGB > MaxSizeGB):
		return fmt.Sprintf("sizeGB must be between 1 and %d", MaxSizeGB)
	default:
		return ""
	}
}

// replay answers a create call whose key was used before.
func (p *Provider) replay(record keyRecord, want createBody) answer {
	switch {
	case record.Deleted:
		return refusal(http.StatusConflict, fmt.Sprintf("this idempotency key made bucket %s, which has been deleted", record.BucketID))
	case record.Region != want.Region:
		return refusal(http.StatusConflict, fmt.Sprintf("this idempotency key made bucket %s in region %s", record.BucketID, record.Region))
	}
	return answer{
		status: http.StatusOK, body: p.body(p.store.buckets[record.BucketID]), outcome: Replayed, id: record.BucketID,
	}
}

func (p *Provider) get(r *http.Request, account string, _ []byte) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.find(r, account)
	if !ok {
		return absent()
	}
	return answer{status: http.StatusOK, body: p.body(b), outcome: Found}
}

func (p *Provider) resize(r *http.Request, account string, body []byte) answer {
	var want struct {
		SizeGB int32 `json:"sizeGB"`
	}
	if err := decode(body, &want); err != nil {
		return refusal(http.StatusBadRequest, err.Error())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.find(r, account)
	switch {
	case !ok:
		return absent()
	case want.SizeGB < 1 || want.SizeGB > MaxSizeGB:
		return refusal(http.StatusUnprocessableEntity, fmt.Sprintf("sizeGB must be between 1 and %d", MaxSizeGB))
	case p.sizeOf(want.SizeGB) < b.SizeGB:
		return refusal(http.StatusUnprocessableEntity, fmt.Sprintf("the bucket has %d GB and cannot shrink", b.SizeGB))
	}
	if _, err := p.store.update(b.ID, func(b *Bucket) { b.SizeGB = p.sizeOf(want.SizeGB) }); err != nil {
		return refusal(http.StatusInternalServerError, err.Error())
	}
	return answer{status: http.StatusOK, body: p.body(p.store.buckets[b.ID]), outcome: Resized}
}

func (p *Provider) delete(r *http.Request, account string, _ []byte) answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.find(r, account)
	if !ok {
		return answer{status: http.StatusNoContent, outcome: Absent}
	}
	if err := p.store.remove(b.ID); err != nil {
		return refusal(http.StatusInternalServerError, err.Error())
	}
	return answer{status: http.StatusNoContent, outcome: Deleted}
}

// find is the bucket that the path names, if the account has it.
func (p *Provider) find(r *http.Request, account string) (Bucket, bool) {
	b, ok := p.store.buckets[r.PathValue("id")]
	return b, ok && b.Account == account
}

func absent() answer {
	a := refusal(http.StatusNotFound, "there is no such bucket")
	a.outcome = Absent
	return a
}
