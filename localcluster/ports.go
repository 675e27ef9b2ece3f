package localcluster

import (
	"cmp"
	"fmt"
	"net"
	"strings"

	"avalonhosting.example/bucketoperator/localcluster/internal/process"
)

const (
	loopback = "127.0.0.1"
	// portAttempts bounds how often a program is started anew because another
	// process took its port first.
	portAttempts = 5
)

// freePort returns a port of the address, by default loopback, that was free a
// moment ago. It may be taken before a program listens on it: see portTaken.
func freePort(address string) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(address, loopback), "0")) //nolint:noctx // does not block
	if err != nil {
		return 0, fmt.Errorf("finding a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

// portTaken tells whether the program ended because its port was in use, which
// only its log can say.
func portTaken(p *process.Process) bool {
	select {
	case <-p.Ended():
		text, err := p.LogTail()
		return err == nil && strings.Contains(text, "address already in use")
	default:
		return false
	}
}
