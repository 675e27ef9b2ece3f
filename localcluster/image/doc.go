// Package image builds container images without a container runtime: from
// static programs, and from programs of the Debian machine it runs on. What it
// writes is loaded by `ctr images import`, `docker load` and their like.
//
// The same content gives the same bytes. Nothing of where, when or by whom an
// image was built gets in: entries are sorted, owned by 0:0, and all times are
// [Config].Created.
package image
