#!/usr/bin/env bash
# Runs the end-to-end tests, for `make e2e`: in a node of the project's own or,
# with CLUSTER=existing, on the cluster of the kubeconfig. Arguments are passed on
# to go test.
# Environment:
#   IMAGES  archives of images that the node has, by blanks apart
#   IMG     the name of the operator's image, for the tests
set -euo pipefail

case "${CLUSTER:-}" in
"") ;;
existing)
	BUCKETOPERATOR_E2E_CLUSTER=existing exec go test -count=1 -p=1 "$@" ./test/e2e/...
	;;
*)
	echo "e2e: CLUSTER is '$CLUSTER': leave it out for a node of its own, or set it to 'existing'" >&2
	exit 2
	;;
esac

echo "==> e2e: the node's programs: built from source the first time, about 15 minutes on 2 cores"
go build -o bin/tool/localcluster ./cmd/localcluster
bin/tool/localcluster node build

echo "==> e2e: the tests of the node itself"
BUCKETOPERATOR_TEST_NODES=1 go test -count=1 "$@" ./localcluster/node ./cmd/localcluster

echo "==> e2e: the tests, built here: inside the node there is no way to download a module"
go test -run='^$' -exec=true ./test/e2e/... >/dev/null

arguments=(--crds=config/crd/bases)
for image in ${IMAGES:-}; do
	arguments+=("--image=$image")
done
echo "==> e2e: the tests, in a node of their own"
exec bin/tool/localcluster node exec "${arguments[@]}" -- env GOPROXY=off go test -count=1 -p=1 "$@" ./test/e2e/...
