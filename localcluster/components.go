package localcluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Component names, as in Cluster.PIDs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

const (
	// ServiceRange is where service addresses come from: a range for benchmarks
	// (RFC 2544), which no real network uses. Without nodes, nothing routes to it.
	ServiceRange = "198.18.0.0/16"

	// serverService is the first address of the range: that of the Service
	// "kubernetes".
	serverService = "198.18.0.1"
)

// essentialControllers are those that matter on a cluster without nodes.
const essentialControllers = "garbage-collector-controller,namespace-controller,resourcequota-controller," +
	"serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller," +
	"clusterrole-aggregation-controller"

// unlimitedAuditLog is in megabytes: a log that is rotated cannot be counted.
const unlimitedAuditLog = 1 << 20

// component is one program of the control plane, that serves TLS on one port of
// one address.
type component struct {
	name string
	path string
	// address is loopback unless set.
	address string
	args    func(port int) []string
	// healthPath answers 200 once the program is ready.
	healthPath string
	client     *tls.Config
}

// probe asks once whether the component is ready.
func (c component) probe(ctx context.Context, client *http.Client, port int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, serverURL(c.address, port)+c.healthPath, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s says %s", c.healthPath, response.Status)
	}
	return nil
}

// probeClient is an HTTP client for probes alone; close it by
// CloseIdleConnections.
func (c component) probeClient() *http.Client {
	return &http.Client{
		Timeout:   probeTimeout,
		Transport: &http.Transport{TLSClientConfig: c.client},
	}
}

const probeTimeout = 5 * time.Second

func serverURL(address string, port int) string {
	return "https://" + net.JoinHostPort(cmp.Or(address, loopback), strconv.Itoa(port))
}

func etcdComponent(path, dataDir string, files *pkiFiles, fsync bool) component {
	return component{
		name:       Etcd,
		path:       path,
		healthPath: "/health",
		client:     files.etcdClient,
		args: func(port int) []string {
			args := []string{
				"--data-dir=" + dataDir,
				"--listen-client-urls=" + serverURL(loopback, port),
				"--advertise-client-urls=" + serverURL(loopback, port),
				"--listen-peer-urls=http://" + loopback + ":0",
				"--cert-file=" + files.etcdServingCert,
				"--key-file=" + files.etcdServingKey,
				"--trusted-ca-file=" + files.etcdCA,
				"--client-cert-auth",
				"--log-level=warn",
				"--quota-backend-bytes=" + strconv.Itoa(etcdQuota),
			}
			if !fsync {
				args = append(args, "--unsafe-no-fsync")
			}
			return args
		},
	}
}

// etcdQuota in bytes is the highest that etcd recommends: room for tests of
// scale.
const etcdQuota = 8 << 30

func apiServerComponent(path string, etcdPort int, dir layout, files *pkiFiles, opts Options) component {
	return component{
		name:       APIServer,
		path:       path,
		address:    opts.serverAddress(),
		healthPath: "/readyz",
		client:     files.adminClient,
		args: func(port int) []string {
			args := []string{
				"--etcd-servers=" + serverURL(loopback, etcdPort),
				"--etcd-cafile=" + files.etcdCA,
				"--etcd-certfile=" + files.etcdClientCert,
				"--etcd-keyfile=" + files.etcdClientKey,
				"--bind-address=" + opts.serverAddress(),
				"--advertise-address=" + opts.serverAddress(),
				"--secure-port=" + strconv.Itoa(port),
				"--service-cluster-ip-range=" + ServiceRange,
				"--tls-cert-file=" + files.servingCert,
				"--tls-private-key-file=" + files.servingKey,
				"--client-ca-file=" + files.ca,
				"--service-account-issuer=https://kubernetes.default.svc",
				"--service-account-key-file=" + files.serviceAccountKey,
				"--service-account-signing-key-file=" + files.serviceAccountKey,
				"--authorization-mode=Node,RBAC",
				"--profiling=false",
				// Without it, one open watch holds up the end for a minute.
				"--shutdown-watch-termination-grace-period=3s",
			}
			args = append(args, nodeArgs(opts, files)...)
			if opts.AuditLog != "" {
				args = append(args,
					"--audit-log-path="+opts.AuditLog,
					"--audit-policy-file="+dir.auditPolicy(opts),
					"--audit-log-maxsize="+strconv.Itoa(unlimitedAuditLog),
				)
			}
			return append(args, opts.APIServerArgs...)
		},
	}
}

// nodeArgs are what the API server has to know of nodes.
func nodeArgs(opts Options, files *pkiFiles) []string {
	if opts.NodeAddress == "" {
		// No pod will ever look for the server by its service.
		return []string{"--endpoint-reconciler-type=none"}
	}
	return []string{
		"--allow-privileged",
		"--kubelet-certificate-authority=" + files.ca,
		"--kubelet-client-certificate=" + files.adminCert,
		"--kubelet-client-key=" + files.adminKey,
		// No DNS server knows the node by its name.
		"--kubelet-preferred-address-types=InternalIP",
	}
}

func controllerManagerComponent(path, kubeconfig string, files *pkiFiles, opts Options) component {
	return component{
		name:       ControllerManager,
		path:       path,
		healthPath: "/healthz",
		client:     files.adminClient,
		args: func(port int) []string {
			args := append(servingArgs(port, files),
				"--kubeconfig="+kubeconfig,
				"--controllers="+controllers(opts),
				"--root-ca-file="+files.ca,
				"--service-account-private-key-file="+files.serviceAccountKey,
				// The API server's own fairness is limit enough: the defaults
				// (20 requests a second) make deleting namespaces crawl.
				"--kube-api-qps=1000",
				"--kube-api-burst=2000",
			)
			return append(args, opts.ControllerManagerArgs...)
		},
	}
}

func schedulerComponent(path, kubeconfig string, files *pkiFiles) component {
	return component{
		name:       Scheduler,
		path:       path,
		healthPath: "/healthz",
		client:     files.adminClient,
		args: func(port int) []string {
			return append(servingArgs(port, files), "--kubeconfig="+kubeconfig)
		},
	}
}

// servingArgs are what the clients of the API server have in common.
func servingArgs(port int, files *pkiFiles) []string {
	return []string{
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + files.servingCert,
		"--tls-private-key-file=" + files.servingKey,
		"--leader-elect=false",
		"--profiling=false",
	}
}

// controllers is the flag --controllers for the options.
func controllers(opts Options) string {
	if len(opts.Controllers) == 0 {
		return essentialControllers
	}
	return strings.Join(opts.Controllers, ",")
}
