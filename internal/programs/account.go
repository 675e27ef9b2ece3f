package programs

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"avalonhosting.example/bucketoperator/localcluster"
)

// AccountUser is the user name of a ServiceAccount.
func AccountUser(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// WriteAccountKubeconfig writes a kubeconfig that speaks to the cluster as a
// ServiceAccount. A program that runs as its own account, and not as an
// administrator, shows on the day that it is forgotten which permission it lacks.
func WriteAccountKubeconfig(cluster *localcluster.Cluster, namespace, account, path string) error {
	user := AccountUser(namespace, account)
	config, err := cluster.User(user, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	if err != nil {
		return fmt.Errorf("making the credentials of %s: %w", user, err)
	}
	file, err := clientcmd.LoadFromFile(cluster.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	file.AuthInfos = map[string]*clientcmdapi.AuthInfo{user: {
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
	}}
	file.Contexts[file.CurrentContext].AuthInfo = user
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return nil
}
