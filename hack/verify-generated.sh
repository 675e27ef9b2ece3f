#!/usr/bin/env bash
# Fails if a generated file differs from what its source gives, is left over, or
# is not in git. Generates into a copy: the working tree stays as it is, and
# other edits in it do not matter.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar --exclude=./.git --exclude=./bin -cf - . | tar -xf - -C "$copy"

# make would hand its own flags down to a second make.
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make --silent --directory="$copy" generate manifests

ok=true
for path in api config charts/bucketoperator/files test/faults/kinds; do
	diff -r -u "$path" "$copy/$path" || ok=false
done
if ! $ok; then
	echo "generated files are out of date: run 'make generate manifests' and commit what changes" >&2
	exit 1
fi

# Without git (an unpacked archive), nothing can have been forgotten.
if untracked=$(git ls-files --others --exclude-standard -- \
	'api/**/zz_generated.*' 'api/**/applyconfiguration/**' config/crd/bases config/rbac \
	config/namespaced/role/role.yaml charts/bucketoperator/files \
	'test/faults/kinds/*/api/**/zz_generated.*' 'test/faults/kinds/*/crd/**' 2>/dev/null) &&
	[[ -n $untracked ]]; then
	printf 'generated, but not in git: run git add for\n%s\n' "$untracked" >&2
	exit 1
fi
