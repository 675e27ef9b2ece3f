#!/usr/bin/env bash
# Fails when the operator that runs works in some namespaces only, and what is
# about to be applied would give it all: the one would pass for an upgrade of the
# other. Arguments: kubectl, and the command that renders the overlay.
set -euo pipefail
kubectl=$1 render=$2

args=$($kubectl --namespace=bucketoperator-system get deployment bucketoperator-controller-manager --ignore-not-found \
	-o jsonpath='{.spec.template.spec.containers[*].args}')
[[ $args == *-namespaces* ]] || exit 0
manifests=$($render)
grep -Eq '^ *- "?--?namespaces(=|"?$)' <<<"$manifests" && exit 0
echo "The operator works in some namespaces only, and this would have it work in all, with rights in all." \
	"Name the overlay that it was installed by, as in CONFIG=config/namespaced, or make undeploy by that first." >&2
exit 1
