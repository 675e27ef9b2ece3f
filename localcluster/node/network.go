//go:build linux

package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Addresses of documentation (RFC 5737) and of benchmarks (RFC 2544): no network
// that this machine or a pod may want to reach uses them.
const (
	nodeAddress = "198.51.100.10"
	nodeNetwork = "/24"
	nodeGateway = "198.51.100.1" // there is none: nothing is routed out
	podRange    = "198.19.0.0/24"
	dnsAddress  = "198.18.0.10" // in localcluster.ServiceRange
)

// links is the node's network, as commands of `ip`. The node's interface is a
// bridge without ports: that, unlike a dummy, is in every kernel that runs
// containers.
const links = `link set lo up
link add node0 type bridge
addr add ` + nodeAddress + nodeNetwork + ` dev node0
link set node0 up
route add default via ` + nodeGateway + ` dev node0
`

// setUpNetwork makes the interfaces of the node, in its own network namespace.
func setUpNetwork(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(links)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("setting up the node's network: %w: %s", err, bytes.TrimSpace(output))
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return fmt.Errorf("letting the node forward packets: %w", err)
	}
	return nil
}

// writePodNetwork writes how containerd connects pods. Each has a link of its own
// to the node, which routes: between two pods on a bridge, the answers of a
// service would pass the node's address translation by, unless the kernel has a
// module for that.
func writePodNetwork(dir string) error {
	text, err := json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0",
		"name":       "pods",
		"plugins": []map[string]any{{
			"type": "ptp",
			"ipam": map[string]any{
				"type":    "host-local",
				"dataDir": "/run/cni",
				"ranges":  [][]map[string]any{{{"subnet": podRange}}},
				"routes":  []map[string]any{{"dst": "0.0.0.0/0"}},
			},
		}},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the pod network: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pods.conflist"), text, 0o600); err != nil {
		return fmt.Errorf("writing the pod network: %w", err)
	}
	return nil
}
