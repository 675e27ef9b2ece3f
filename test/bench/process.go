package main

import (
	"fmt"

	"github.com/prometheus/procfs"

	"avalonhosting.example/bucketoperator/localcluster"
)

// usage is the CPU time in seconds that processes have used so far.
type usage struct{ server, etcd float64 }

func (u usage) since(before usage) usage {
	return usage{server: u.server - before.server, etcd: u.etcd - before.etcd}
}

// usage is that of the API server and etcd. The operator's and the limit's are
// told by themselves.
func (w *world) usage() (usage, error) {
	pids := w.cluster.PIDs()
	server, err := cpuSeconds(pids[localcluster.APIServer])
	if err != nil {
		return usage{}, err
	}
	etcd, err := cpuSeconds(pids[localcluster.Etcd])
	return usage{server: server, etcd: etcd}, err
}

func cpuSeconds(pid int) (float64, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("finding process %d: %w", pid, err)
	}
	stat, err := process.Stat()
	if err != nil {
		return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
	}
	return stat.CPUTime(), nil
}
