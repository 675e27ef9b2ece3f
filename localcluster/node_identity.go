package localcluster

// CAFile is the file with the certificate of the authority that vouches for all
// clients and servers of the cluster, but etcd's.
func (c *Cluster) CAFile() string { return c.pki.files.ca }

// ServingCertificate issues a certificate, and the private key of it, for a
// server on the hosts given (names and IP addresses) and on loopback. The files
// are called name, in the cluster's folder.
func (c *Cluster) ServingCertificate(name string, hosts ...string) (certFile, keyFile string, err error) {
	pair, err := c.pki.kubernetes.server(name, hosts...)
	if err != nil {
		return "", "", err
	}
	return pair.write(layout(c.dir.Path).pki(), name)
}

// UserKubeconfig writes a kubeconfig for the user of that name, in those groups,
// and returns its path. The file is named after the program that uses it.
func (c *Cluster) UserKubeconfig(program, user string, groups ...string) (path string, err error) {
	config, err := c.User(user, groups...)
	if err != nil {
		return "", err
	}
	path = layout(c.dir.Path).kubeconfigOf(program)
	return path, writeKubeconfig(config, user, path)
}
