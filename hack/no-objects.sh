#!/usr/bin/env bash
# Fails while StorageBuckets or BucketProviderConfigs exist: without the
# operator their finalizers would hold them forever, and with their CRD every
# bucket would be deleted.
set -euo pipefail
kubectl=${1:-kubectl}

for kind in storagebuckets bucketproviderconfigs; do
	resource=$kind.storage.avalonhosting.example
	# Without the CRD there are no objects. Its own assignment, so that a kubectl that fails ends the script.
	crd=$($kubectl get crd "$resource" --ignore-not-found -o name)
	[[ -n $crd ]] || continue
	objects=$($kubectl get "$resource" --all-namespaces --no-headers \
		-o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name)
	[[ -n $objects ]] || continue
	printf 'There are %s still:\n%s\n' "$kind" "$objects" >&2
	echo "Delete them while the operator runs, then call this again. deletionPolicy: Retain keeps a bucket at its provider." >&2
	exit 1
done
