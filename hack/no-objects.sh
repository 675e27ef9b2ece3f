#!/usr/bin/env bash
# Fails while objects of the operator's kinds exist: without the operator their
# finalizers would hold them forever, and with their CRDs all of them would be
# deleted, and what they stand for.
set -euo pipefail
kubectl=${1:-kubectl}

left=
for definition in "$(dirname "$0")"/../config/crd/bases/*.yaml; do
	# The files are called GROUP_PLURAL.yaml.
	group_plural=$(basename "$definition" .yaml)
	kind=${group_plural#*_} group=${group_plural%%_*}
	resource=$kind.$group
	# Without the CRD there are no objects. Its own assignment, so that a kubectl that fails ends the script.
	crd=$($kubectl get crd "$resource" --ignore-not-found -o name)
	[[ -n $crd ]] || continue
	objects=$($kubectl get "$resource" --all-namespaces --no-headers \
		-o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name)
	[[ -n $objects ]] || continue
	left+=$(printf 'There are still %s:\n%s' "$kind" "$objects")$'\n'
done
[[ -n $left ]] || exit 0
printf '%s' "$left" >&2
echo "Delete them while the operator runs, then call this again. deletionPolicy: Retain keeps a bucket at its provider." >&2
exit 1
