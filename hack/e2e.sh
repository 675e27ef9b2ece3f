#!/usr/bin/env bash
# Runs the end-to-end tests, for `make e2e`: in a node of the project's own or,
# with CLUSTER=existing, on the cluster of the kubeconfig. Arguments are passed on
# to go test.
# Environment:
#   IMAGES        archives of images that the node has, by blanks apart
#   IMG           the name of the operator's image, for the tests
#   PROVIDER_IMG  that of the mock provider (cmd/mockprovider), with CLUSTER=existing
set -euo pipefail

cd "$(dirname "$0")/.."
made=$PWD/bin/e2e

case "${CLUSTER:-}" in
"") ;;
existing)
	# A cluster pulls its images, so they must be where it can.
	for name in IMG PROVIDER_IMG; do
		if [[ -z ${!name:-} || ${!name} == registry.example.com/* ]]; then
			echo "e2e: $name is '${!name:-}': with CLUSTER=existing, set it to an image that the cluster can pull" >&2
			exit 2
		fi
	done
	;;
*)
	echo "e2e: CLUSTER is '$CLUSTER': leave it out for a node of its own, or set it to 'existing'" >&2
	exit 2
	;;
esac

# Chainsaw is built with the newest Go that it knows, see tools/chainsaw/go.mod.
echo "==> e2e: Chainsaw, which runs the stories: built from source the first time, about 4 minutes on 2 cores"
GOTOOLCHAIN=go1.25.5 go build -C tools/chainsaw -o "$made/chainsaw" github.com/kyverno/chainsaw
export CHAINSAW=$made/chainsaw

if [[ -n ${CLUSTER:-} ]]; then
	BUCKETOPERATOR_E2E_CLUSTER=existing exec go test -count=1 -p=1 "$@" ./test/e2e/...
fi

echo "==> e2e: the node's programs: built from source the first time, about 15 minutes on 2 cores"
go build -o bin/tool/localcluster ./cmd/localcluster
bin/tool/localcluster node build

echo "==> e2e: the tests of the node itself"
BUCKETOPERATOR_TEST_NODES=1 go test -count=1 "$@" ./localcluster/node ./cmd/localcluster

echo "==> e2e: the tests, built here: inside the node there is no way to download a module"
go test -run='^$' -exec=true ./test/e2e/... >/dev/null

echo "==> e2e: the images of a provider, and of the last release"
CGO_ENABLED=0 go build -trimpath -o "$made/mockprovider" ./cmd/mockprovider
go run ./hack/testimage -program "$made/mockprovider" -reference registry.example.com/mockprovider:e2e -o "$made/mockprovider.tar"
hack/previous-release.sh "$made"

export BUCKETOPERATOR_E2E_AUDIT_LOG=$made/audit.log BUCKETOPERATOR_E2E_PREVIOUS=$made/previous.yaml
rm -f "$BUCKETOPERATOR_E2E_AUDIT_LOG"
arguments=("--audit-log=$BUCKETOPERATOR_E2E_AUDIT_LOG")
for image in ${IMAGES:-} "$made"/*.tar; do
	arguments+=("--image=$image")
done
echo "==> e2e: the tests, in a node of their own"
exec bin/tool/localcluster node exec "${arguments[@]}" -- env GOPROXY=off go test -count=1 -p=1 "$@" ./test/e2e/...
