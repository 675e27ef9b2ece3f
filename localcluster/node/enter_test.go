//go:build linux

package node

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestOwnThreadIsNeverTheFirstOfTheProcess(t *testing.T) {
	t.Parallel()
	// The scheduler takes any thread that is idle; often enough, that is the first.
	for range 2000 {
		thread := make(chan int)
		onOwnThread(func() { thread <- unix.Gettid() })
		if got := <-thread; got == unix.Getpid() {
			t.Fatal("the function ran on the first thread")
		}
	}
}
