package gobuild

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a process that waits for another's build looks whether
// it is done.
const lockPoll = 200 * time.Millisecond

// Once returns the folder with the recipe's programs, and builds them first if
// nobody has yet. A file lock keeps other processes, such as the tests of
// another package, from building the same at the same time. Progress is told how
// a build gets on.
func (r Recipe) Once(ctx context.Context, progress io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder for %s: %w", r.Name, err)
	}
	return r.onceIn(ctx, filepath.Join(cache, "bucketoperator"), progress)
}

func (r Recipe) onceIn(ctx context.Context, cache string, progress io.Writer) (string, error) {
	key, err := r.key(ctx)
	if err != nil {
		return "", fmt.Errorf("preparing the build of %s: %w", r.Name, err)
	}
	target := filepath.Join(cache, r.Name+"-"+key)
	if r.complete(target) == nil {
		return target, nil
	}

	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("making the cache folder for %s: %w", r.Name, err)
	}
	unlock, err := r.lock(ctx, target+".lock", progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if r.complete(target) == nil {
		return target, nil // another process built it while we waited
	}
	if err := r.buildInto(ctx, target, progress); err != nil {
		return "", fmt.Errorf("building %s: %w", r.Name, err)
	}
	return target, nil
}

func (r Recipe) lock(ctx context.Context, path string, progress io.Writer) (unlock func(), err error) {
	lock := flock.New(path)
	locked, err := lock.TryLock()
	if err == nil && !locked {
		fmt.Fprintf(progress, "localcluster: waiting for another process that builds %s\n", r.Name)
		_, err = lock.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		return nil, fmt.Errorf("locking the build of %s: %w", r.Name, err)
	}
	// The lock file stays: removing it would let two processes lock two files
	// of the same name. Closing it cannot lose anything.
	return func() { _ = lock.Close() }, nil
}
