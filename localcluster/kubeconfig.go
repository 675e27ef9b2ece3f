package localcluster

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// contextName is the cluster's and the context's name in kubeconfig files.
const contextName = "bucketoperator-local"

// newConfig is the configuration of a client that holds pair. It has no
// client-side rate limit: the API server has its own.
func newConfig(server string, ca []byte, pair keyPair) *rest.Config {
	return &rest.Config{
		Host: server,
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   ca,
			CertData: pair.cert,
			KeyData:  pair.key,
		},
	}
}

// writeKubeconfig writes what config holds as a file that only this user reads.
func writeKubeconfig(config *rest.Config, user, path string) error {
	file := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{contextName: {
			Server:                   config.Host,
			CertificateAuthorityData: config.CAData,
		}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{user: {
			ClientCertificateData: config.CertData,
			ClientKeyData:         config.KeyData,
		}},
		Contexts: map[string]*clientcmdapi.Context{contextName: {
			Cluster:  contextName,
			AuthInfo: user,
		}},
		CurrentContext: contextName,
	}
	text, err := clientcmd.Write(file)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig of %s: %w", user, err)
	}
	// An older file may be readable by all; a fresh one is created right.
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return os.Chmod(path, 0o600)
}
