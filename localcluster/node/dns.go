//go:build linux

package node

import (
	"context"
	_ "embed"
	"strings"

	"avalonhosting.example/bucketoperator/localcluster"
)

//go:embed dns.yaml
var dnsObjects string

// installDNS makes the objects of the cluster's DNS server.
func installDNS(ctx context.Context, cluster *localcluster.Cluster) error {
	return kubectl(ctx, cluster, strings.NewReader(dnsObjects), "apply", "--server-side", "-f", "-")
}
