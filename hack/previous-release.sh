#!/usr/bin/env bash
# Makes what the rehearsal of an upgrade begins with: the image and the manifests
# of the last release, FOLDER/previous.tar and FOLDER/previous.yaml, built from
# the revision that the CRDs are compared with. A copy without history, or a
# shallow clone whose origin cannot help, has no such revision: it says so and makes
# nothing. In a whole clone that is a fault, as a rehearsal would end unseen.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:?usage: hack/previous-release.sh FOLDER}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
image=registry.example.com/bucketoperator

revision=$(awk '!/^#/ && NF { print $1; exit }' hack/crdcompat/baseline/REVISION)
rm -f "$folder/previous.tar" "$folder/previous.yaml"
known() { git cat-file -e "$revision^{commit}" 2>/dev/null; }
if [[ ! -e .git ]]; then # nor is it looked for in a repository around the copy
	echo "This copy has no history, and so not the last release, $revision: its upgrade is not rehearsed."
	exit 0
fi
shallow=$(git rev-parse --is-shallow-repository)
if ! known && [[ $shallow == true ]]; then
	git fetch --quiet --depth=1 origin "$revision" 2>/dev/null || true
	if ! known; then
		echo "The last release, $revision, is not in this shallow clone: its upgrade is not rehearsed. git fetch --unshallow brings it."
		exit 0
	fi
fi
if ! known; then
	echo "The last release, $revision, is not in the history of this clone. hack/crdcompat/baseline/REVISION has to name a commit that is." >&2
	exit 1
fi
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git archive "$revision" | tar -x -C "$source"
(cd "$source" && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o "$source/bucketoperator" ./cmd/manager)
go run ./hack/testimage -program "$source/bucketoperator" -entrypoint /bucketoperator -reference "$image:previous" -o "$folder/previous.tar"
go tool -modfile=tools/go.mod kustomize build "$source/config/default" |
	sed "s|image: $image:.*|image: $image:previous|" >"$folder/previous.yaml"
