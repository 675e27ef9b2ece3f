package testnode

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// cuts counts the cuts of this process: each has a table of its own.
var cuts atomic.Int64

// Cut drops all packets between a pod and the peers, in both directions, of open
// connections, too; without peers, all but those of the pod's own loopback, the
// kubelet's probes included. Peers are IP addresses as the pod sees them: to cut
// it off from a service, name the service's. The network is whole again when mend
// is called, and at the test's end. It skips the test on a cluster that is not the
// project's own node.
func Cut(t testing.TB, pod *corev1.Pod, peers ...string) (mend func()) {
	t.Helper()
	NeedsOwnNode(t, "cutting a pod's network")
	processes, err := processesOf("pod" + string(pod.UID))
	if err != nil {
		t.Fatalf("cutting the network of pod %s: %v", pod.Name, err)
	}
	// Any of them: the network is the whole pod's.
	pid := processes[0].PID
	table := fmt.Sprintf("testnode_%d", cuts.Add(1))
	if err := nft(t.Context(), pid, cutRules(table, peers)); err != nil {
		t.Fatalf("cutting the network of pod %s: %v", pod.Name, err)
	}
	mended := false
	mend = func() {
		if mended {
			return
		}
		mended = true
		// Not the test's context: at the end that is over.
		if err := nft(context.Background(), pid, "delete table inet "+table+"\n"); err != nil {
			t.Errorf("mending the network of pod %s: %v", pod.Name, err)
		}
	}
	t.Cleanup(mend)
	return mend
}

// cutRules drop packets before anything else sees them.
func cutRules(table string, peers []string) string {
	from, to := `iif != "lo"`, `oif != "lo"`
	if len(peers) > 0 {
		set := "{ " + strings.Join(peers, ", ") + " }"
		from, to = "ip saddr "+set, "ip daddr "+set
	}
	return fmt.Sprintf(`table inet %s {
	chain in { type filter hook input priority -300; %s drop; }
	chain out { type filter hook output priority -300; %s drop; }
}
`, table, from, to)
}

// nft changes the packet filter of the network that the process has.
func nft(ctx context.Context, pid int, commands string) error {
	cmd := exec.CommandContext(ctx, "nsenter", "--target="+strconv.Itoa(pid), "--net", "nft", "--file", "-")
	cmd.Stdin = strings.NewReader(commands)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
