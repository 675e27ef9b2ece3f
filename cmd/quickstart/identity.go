package main

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"avalonhosting.example/bucketoperator/localcluster"
)

// The operator's namespace and ServiceAccount, as in config/rbac.
const (
	operatorNamespace = "bucketoperator-system"
	operatorAccount   = "bucketoperator-controller-manager"
)

// writeOperatorKubeconfig writes a kubeconfig of the operator's ServiceAccount.
// The operator does not run as an administrator here, so that a permission that
// its role lacks shows on the day that it is forgotten.
func writeOperatorKubeconfig(cluster *localcluster.Cluster, path string) error {
	user := "system:serviceaccount:" + operatorNamespace + ":" + operatorAccount
	config, err := cluster.User(user, "system:serviceaccounts", "system:serviceaccounts:"+operatorNamespace)
	if err != nil {
		return fmt.Errorf("making the operator's credentials: %w", err)
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
		return fmt.Errorf("writing the operator's kubeconfig: %w", err)
	}
	return nil
}
