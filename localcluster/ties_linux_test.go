package localcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"avalonhosting.example/bucketoperator/localcluster/internal/workdir"
)

// parentEnv makes the test binary start a cluster, print its process ids and
// then stay until it is killed.
const parentEnv = "LOCALCLUSTER_TEST_PARENT"

func actAsParent() {
	cluster, err := Start(processContext, Options{})
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(cluster.PIDs())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

func TestKilledParentTakesItsProgramsAlong(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1", "TMPDIR="+temp)
	parent.Stderr = os.Stderr
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pids map[string]int
	decodeErr := json.NewDecoder(output).Decode(&pids)
	if err := parent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // it was killed
	if decodeErr != nil {
		t.Fatal(decodeErr)
	}

	if len(pids) != 3 {
		t.Errorf("the parent ran %v, want three programs", pids)
	}
	for name, pid := range pids {
		eventually(t, name+" is gone", func(context.Context) (bool, error) { return !running(pid), nil })
	}

	// The next cluster clears up what the killed parent could not.
	workdir.RemoveAbandoned(temp)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v (%v)", left, err)
	}
}

// running tells whether a process is there and not just a zombie that its new
// parent, process 1, has yet to reap.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, afterName, _ := bytes.Cut(stat, []byte(") "))
	return !bytes.HasPrefix(afterName, []byte("Z"))
}
