package mockprovider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// store keeps the buckets and what is known of idempotency keys, in memory and
// in a file if it has one. Every change is in the file before it is told to
// anybody, or is undone. The Provider's lock guards it.
type store struct {
	file    string
	buckets map[string]Bucket
	keys    map[keyID]keyRecord
	retired map[string]bool // ids of buckets that there were; none is given again
}

// keyID is an idempotency key: accounts do not see each other's.
type keyID struct{ account, key string }

// keyRecord is what an idempotency key made. It outlives the bucket's deletion
// so that a late duplicate of the create call makes no second one.
type keyRecord struct {
	BucketID string `json:"bucketID"`
	Region   string `json:"region"`
	Deleted  bool   `json:"deleted,omitempty"`
}

// content is the file.
type content struct {
	Buckets []Bucket   `json:"buckets"`
	Keys    []keyEntry `json:"keys"`
	Retired []string   `json:"retired"`
}

type keyEntry struct {
	Account string `json:"account,omitempty"`
	Key     string `json:"key"`
	keyRecord
}

func newStore(file string) store {
	return store{file: file, buckets: map[string]Bucket{}, keys: map[keyID]keyRecord{}, retired: map[string]bool{}}
}

func (s *store) load() error {
	if s.file == "" {
		return nil
	}
	data, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return s.save() // now, so that a folder that is not there shows at once
	}
	if err != nil {
		return err
	}
	var c content
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("%s is not a file of buckets: %w", s.file, err)
	}
	for _, b := range c.Buckets {
		s.buckets[b.ID] = b
	}
	for _, k := range c.Keys {
		s.keys[keyID{k.Account, k.Key}] = k.keyRecord
	}
	for _, id := range c.Retired {
		s.retired[id] = true
	}
	return nil
}

// insert adds a bucket under an id that no other bucket has, or had.
func (s *store) insert(b Bucket) (Bucket, error) {
	b.ID = s.freeID()
	key := keyID{b.Account, b.Key}
	s.buckets[b.ID] = b
	if b.Key != "" {
		s.keys[key] = keyRecord{BucketID: b.ID, Region: b.Region}
	}
	return b, s.saveOr(func() {
		delete(s.buckets, b.ID)
		delete(s.keys, key)
	})
}

// remove deletes a bucket and remembers that its key's bucket was deleted.
func (s *store) remove(id string) error {
	b := s.buckets[id]
	key := keyID{b.Account, b.Key}
	record, known := s.keys[key]
	s.retired[id] = true
	delete(s.buckets, id)
	if known {
		s.keys[key] = keyRecord{BucketID: record.BucketID, Region: record.Region, Deleted: true}
	}
	return s.saveOr(func() {
		s.buckets[id] = b
		if known {
			s.keys[key] = record
		}
	})
}

// vanish removes a bucket and its key.
func (s *store) vanish(id string) (bool, error) {
	b, exists := s.buckets[id]
	if !exists {
		return false, nil
	}
	key := keyID{b.Account, b.Key}
	record, known := s.keys[key]
	s.retired[id] = true
	delete(s.buckets, id)
	delete(s.keys, key)
	return true, s.saveOr(func() {
		s.buckets[id] = b
		if known {
			s.keys[key] = record
		}
	})
}

func (s *store) update(id string, change func(*Bucket)) (bool, error) {
	before, exists := s.buckets[id]
	if !exists {
		return false, nil
	}
	after := before
	change(&after)
	s.buckets[id] = after
	return true, s.saveOr(func() { s.buckets[id] = before })
}

// freeID is random, so that a provider that lost its memory in a restart does
// not give the id of a bucket that it had to another one.
func (s *store) freeID() string {
	for least := 100_000; ; least *= 10 {
		id := fmt.Sprintf("bucket-%d", least+rand.IntN(9*least)) //nolint:gosec // ids are no secrets
		if _, taken := s.buckets[id]; !taken && !s.retired[id] {
			return id
		}
	}
}

// saveOr writes the file; if that fails, it undoes the change.
func (s *store) saveOr(undo func()) error {
	if s.file == "" {
		return nil
	}
	if err := s.save(); err != nil {
		undo()
		return fmt.Errorf("writing the buckets: %w", err)
	}
	return nil
}

func (s *store) save() error {
	c := content{Buckets: make([]Bucket, 0, len(s.buckets)), Keys: make([]keyEntry, 0, len(s.keys))}
	for _, b := range s.buckets {
		c.Buckets = append(c.Buckets, b)
	}
	for id, record := range s.keys {
		c.Keys = append(c.Keys, keyEntry{Account: id.account, Key: id.key, keyRecord: record})
	}
	c.Retired = slices.AppendSeq(make([]string, 0, len(s.retired)), maps.Keys(s.retired))
	slices.Sort(c.Retired)
	slices.SortFunc(c.Buckets, func(a, b Bucket) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(c.Keys, func(a, b keyEntry) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Key, b.Key))
	})
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(c); err != nil {
		return err
	}
	return replaceFile(s.file, data.Bytes())
}

// replaceFile puts data in the place of a file, so that a crash leaves the old
// file or the new one.
func replaceFile(name string, data []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, temp.Close(), os.Remove(temp.Name()))
		}
	}()
	if _, err := temp.Write(data); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}
