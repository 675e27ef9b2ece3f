//go:build linux

package node

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"avalonhosting.example/bucketoperator/localcluster"
	"avalonhosting.example/bucketoperator/localcluster/internal/process"
)

// Name of the one node.
const Name = "node"

const clusterDomain = "cluster.local"

const (
	// leaseSeconds is how long the node counts as alive after it last said so; it
	// says so four times as often. Half of the default, for tests that wait for it.
	leaseSeconds = 20
	// graceArg is the controller manager's side of it.
	graceArg = "--node-monitor-grace-period=20s"
)

func startKubelet(cluster *localcluster.Cluster) (*process.Process, error) {
	kubeconfig, err := cluster.UserKubeconfig("kubelet", "system:node:"+Name, "system:nodes")
	if err != nil {
		return nil, err
	}
	certFile, keyFile, err := cluster.ServingCertificate("kubelet", Name, nodeAddress)
	if err != nil {
		return nil, err
	}
	// Pods look names up in the cluster alone: nothing else can be reached.
	resolv := filepath.Join(mounted.config(), "resolv.conf")
	if err := os.WriteFile(resolv, nil, 0o644); err != nil {
		return nil, fmt.Errorf("writing the node's resolv.conf: %w", err)
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"address":                  nodeAddress,
		"authentication":           map[string]any{"anonymous": map[string]any{"enabled": false}, "x509": map[string]any{"clientCAFile": cluster.CAFile()}},
		"authorization":            map[string]any{"mode": "Webhook"},
		"tlsCertFile":              certFile,
		"tlsPrivateKeyFile":        keyFile,
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs",
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"makeIPTablesUtilChains":   false, // kube-proxy does without
		"oomScoreAdj":              0,     // lower than it is takes CAP_SYS_RESOURCE
		"clusterDNS":               []string{dnsAddress},
		"clusterDomain":            clusterDomain,
		"resolvConf":               resolv,
		"podLogsDir":               mounted.podLogs(),
		"volumePluginDir":          filepath.Join(mounted.kubelet(), "volume-plugins"),
		"nodeLeaseDurationSeconds": leaseSeconds,
		// Nobody could pull again what is removed for want of space, and what fills
		// the machine's disk is not the node's to tell.
		"imageGCHighThresholdPercent": 100,
		"evictionHard":                map[string]string{"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
		// Tests start many pods at once.
		"kubeAPIQPS":          1000,
		"kubeAPIBurst":        2000,
		"serializeImagePulls": false,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the kubelet's configuration: %w", err)
	}
	config := filepath.Join(mounted.config(), "kubelet.yaml")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return nil, fmt.Errorf("writing the kubelet's configuration: %w", err)
	}
	return process.Start("kubelet", cluster.Assets().Kubelet, []string{
		"--config=" + config,
		"--kubeconfig=" + kubeconfig,
		"--hostname-override=" + Name,
		"--node-ip=" + nodeAddress,
		"--root-dir=" + mounted.kubelet(),
		"--cert-dir=" + filepath.Join(mounted.kubelet(), "pki"),
	}, mounted.log("kubelet"))
}

func startKubeProxy(cluster *localcluster.Cluster) (*process.Process, error) {
	kubeconfig, err := cluster.UserKubeconfig("kube-proxy", "system:kube-proxy")
	if err != nil {
		return nil, err
	}
	return process.Start("kube-proxy", cluster.Assets().KubeProxy, []string{
		"--kubeconfig=" + kubeconfig,
		"--hostname-override=" + Name,
		"--proxy-mode=nftables",
		"--cluster-cidr=" + podRange,
		// How many connections are tracked is the machine's to say.
		"--conntrack-max-per-core=0",
		"--oom-score-adj=0",
	}, mounted.log("kube-proxy"))
}
