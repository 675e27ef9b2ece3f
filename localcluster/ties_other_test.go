//go:build unix && !linux

package localcluster

import "syscall"

// parentEnv is unused: these systems cannot tie a child to its parent's life.
const parentEnv = "LOCALCLUSTER_TEST_PARENT"

func actAsParent() {}

func running(pid int) bool { return syscall.Kill(pid, 0) == nil }
