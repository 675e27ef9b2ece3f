//go:build linux

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
)

// partEnv tells a copy of this program which part of a node it is.
const partEnv = "BUCKETOPERATOR_NODE_PART"

const (
	initPart       = "init"
	supervisorPart = "supervisor"
)

// statusFD is the file descriptor by which the parts tell the process that
// started them how they are.
const statusFD = 3

// Inside does nothing in a process that was started as usual. In one that Start
// made to be a part of a node, it is that part, and never returns.
func Inside() {
	part := os.Getenv(partEnv)
	if part == "" {
		return
	}
	syscall.CloseOnExec(statusFD)
	status := os.NewFile(statusFD, "status")
	var code int
	var err error
	switch part {
	case initPart:
		code, err = runInit(status)
	case supervisorPart:
		err = runSupervisor(context.Background(), status) //nolint:forbidigo // this is the main of a process
	default:
		err = fmt.Errorf("no part of a node is called %q: unset %s", part, partEnv)
	}
	if err != nil {
		report(status, message{Error: err.Error()})
		code = 1
	}
	os.Exit(code)
}

// message is what a part tells: that the node is up, or else an error.
type message struct {
	Up    *up    `json:",omitempty"`
	Error string `json:",omitempty"`
}

// up is what there is to know of a node that is up.
type up struct {
	Kubeconfig string
	// Components are the programs' process ids, inside, by name.
	Components map[string]int
}

func report(status *os.File, m message) {
	// Whoever would have to be told of a failure is gone.
	_ = json.NewEncoder(status).Encode(m)
}
