# `make help` lists the targets. Go builds and caches every tool from its pinned
# version: tools/go.mod has the generators, tools/lint/go.mod the linters,
# tools/helm/go.mod has Helm.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

IMG ?= registry.example.com/bucketoperator:v0.1.0
# What --version prints, and the image's label.
VERSION ?= $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null)
# The time of the image and all in it, in seconds since 1970: that of the commit.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --pretty=%ct 2>/dev/null || echo 0)
IMAGE_ARCH ?= $(shell go env GOARCH)
KUBECTL ?= kubectl
# The overlay that deploy and undeploy take.
CONFIG ?= config/default
TEST_TIMEOUT ?= 30m
TEST_ARGS ?=
RUN_ARGS ?=
LINT_ARGS ?=
CLUSTER ?=

# Neither folders nor the build id nor the state of git nor settings of the user get
# in: same source and version, same program. The Dockerfile calls `make build`, too.
GO_BUILD = CGO_ENABLED=0 GOFLAGS=-trimpath GOFIPS140=off GOAMD64=v1 GOARM64=v8.0 go build -buildvcs=false -ldflags='-s -w -buildid= -X main.version=$(VERSION)'

TOOL := go tool -modfile=tools/go.mod
LINT := go tool -modfile=tools/lint/go.mod golangci-lint-kube-api-linter
HELM := go tool -modfile=tools/helm/go.mod helm
CHART := charts/bucketoperator
PROGRAMS := localcluster/kubernetes localcluster/containerd localcluster/coredns
MODULES := . tools tools/helm tools/lint $(PROGRAMS)
SCRIPTS := .ci/run $(wildcard hack/*.sh)
# Kinds of the tests' own, which never ship: each has its types in api, its CRD in crd.
TEST_KINDS := $(patsubst %/api/,%,$(wildcard test/faults/kinds/*/api/))

##@ Try it

.PHONY: help
help: ## Show this list.
	@awk 'BEGIN { FS = ":.*## "; print "make TARGET, where TARGET is one of" } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Start a control plane, the mock provider and the operator here, with a sample; Ctrl-C ends it all. RUN_ARGS=-h tells more.
	go build -o bin/tool/quickstart ./cmd/quickstart && exec bin/tool/quickstart run $(RUN_ARGS)

.PHONY: demo
demo: ## The same, and walk a bucket through its life: create, resize, self-heal, delete.
	go build -o bin/tool/quickstart ./cmd/quickstart && exec bin/tool/quickstart demo

.PHONY: kubectl
kubectl: ## Build kubectl, together with the control plane, and print its path.
	@programs=$$(go run ./cmd/localcluster build) && echo "$$programs/kubectl"

##@ Test it

.PHONY: test
test: control-plane helm ## Run every test, those against a real API server too. TEST_ARGS=-race adds to go test.
	go run ./cmd/localcluster exec -- go test -count=1 -timeout $(TEST_TIMEOUT) $(TEST_ARGS) ./...

.PHONY: e2e
e2e: $(if $(CLUSTER),,image) ## Run the tests on real pods, in a node of their own (Linux, root). CLUSTER=existing takes your kubeconfig's cluster instead.
	CLUSTER=$(CLUSTER) IMG=$(IMG) IMAGES=bin/bucketoperator-image.tar hack/e2e.sh -timeout $(TEST_TIMEOUT) $(TEST_ARGS)

.PHONY: faults
faults: control-plane ## Run the whole fault matrix, of which `make test` runs a part.
	cd test/faults && go test -faults.all -timeout 3h $(TEST_ARGS)

.PHONY: bench
bench: control-plane ## Run the benchmark; it prints a table and writes it as JSON.
	go run ./test/bench

.PHONY: helm
helm:
	@echo "==> helm: built from source the first time, which takes some minutes"
	$(HELM) version --short

.PHONY: control-plane
control-plane:
	@echo "==> control plane: built from source the first time, about 12 minutes on 2 cores"
	go run ./cmd/localcluster build

##@ Check it

.PHONY: verify
verify: lint verify-generated verify-modules verify-crds verify-manifests verify-chart verify-scripts verify-links ## Lint, and check generated files, modules, CRDs against the last release, manifests, chart, scripts and links.
	@echo "verify: all is well"

.PHONY: lint
lint: ## Run the linters. LINT_ARGS=--fix repairs what it can.
	@echo "==> lint: the linters are built the first time, about 3 minutes on 2 cores"
	$(LINT) run $(LINT_ARGS) -c .golangci-kal.yml ./api/... $(TEST_KINDS:%=./%/api/...)
	$(LINT) run $(LINT_ARGS) ./...
	$(LINT) fmt --diff $(PROGRAMS)

# Not a part of verify: it asks the Go vulnerability database, and a new entry
# there must not fail a build of an unchanged commit.
.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what is linked (needs the Go vulnerability database).
	$(TOOL) govulncheck ./...

.PHONY: verify-generated
verify-generated:
	@echo "==> generated files"
	hack/verify-generated.sh

.PHONY: verify-modules
verify-modules:
	@echo "==> go.mod and go.sum"
	for module in $(MODULES); do (cd $$module && go mod tidy -diff); done

.PHONY: verify-crds
verify-crds:
	@echo "==> CRDs against those of the last release"
	go run ./hack/crdcompat

.PHONY: verify-manifests
verify-manifests:
	@echo "==> manifests"
	for dir in default namespaced crd samples monitoring argocd; do $(TOOL) kustomize build config/$$dir >/dev/null; done

# That the chart gives the same as config/, and that an API server takes it, is
# tested by `make test`.
.PHONY: verify-chart
verify-chart: helm
	@echo "==> chart"
	for values in $(CHART)/ci/*.yaml; do \
		$(HELM) lint --strict --quiet $(CHART) --values $$values; \
		$(HELM) template bucketoperator $(CHART) --values $$values >/dev/null; \
	done

.PHONY: verify-scripts
verify-scripts:
	@echo "==> shell scripts"
	$(TOOL) shfmt -d $(SCRIPTS)
	for script in $(SCRIPTS); do bash -n $$script; done
	if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); fi

.PHONY: verify-links
verify-links:
	@echo "==> links in the docs"
	go run ./hack/linkcheck

##@ Build it

.PHONY: generate
generate: ## Generate Go code from the API types: deep copies and apply configurations.
	find api -name 'zz_generated.*' -delete
	rm -rf api/*/*/applyconfiguration
	$(TOOL) controller-gen object applyconfiguration paths=./api/...
	for kind in $(TEST_KINDS); do \
		find $$kind/api -name 'zz_generated.*' -delete; \
		$(TOOL) controller-gen object paths=./$$kind/api/...; \
	done

.PHONY: manifests
manifests: ## Generate the CRDs and roles from markers, with all lists of kinds, and copy them into the chart.
	rm -rf config/crd/bases config/rbac/role.yaml config/namespaced/role/role.yaml $(CHART)/files
	$(TOOL) controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	for kind in $(TEST_KINDS); do \
		rm -rf $$kind/crd; \
		$(TOOL) controller-gen crd paths=./$$kind/api/... output:crd:dir=$$kind/crd; \
	done
	$(TOOL) controller-gen rbac:roleName=bucketoperator-manager-role paths=./internal/... output:rbac:dir=config/rbac
	sed 's/^kind: ClusterRole$$/kind: Role/' config/rbac/role.yaml >config/namespaced/role/role.yaml
	go run ./hack/manifests
	mkdir -p $(CHART)/files/crds $(CHART)/files/roles $(CHART)/files/monitoring
	cp config/crd/bases/*.yaml $(CHART)/files/crds
	cp config/rbac/*role.yaml config/rbac/*roles.yaml $(CHART)/files/roles
	cp config/monitoring/{prometheusrule.yaml,servicemonitor.yaml,dashboard.json} $(CHART)/files/monitoring

.PHONY: build
build: ## Build the operator into bin/bucketoperator.
	@echo "==> bin/bucketoperator: about 2 minutes the first time"
	$(GO_BUILD) -o bin/bucketoperator ./cmd/manager

.PHONY: image
image: ## Build the operator's image into bin/bucketoperator-image.tar, without Docker, and list what is in it. IMG=... names it.
	@echo "==> bin/bucketoperator-image.tar: about 3 minutes the first time"
	GOOS=linux GOARCH=$(IMAGE_ARCH) $(GO_BUILD) -o bin/image/bucketoperator ./cmd/manager
	SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) go run ./hack/image -program bin/image/bucketoperator -version '$(VERSION)' -reference $(IMG)

.PHONY: clean
clean: ## Remove what was built here. Go's own caches stay.
	rm -rf bin

##@ Deploy it (to the cluster that kubectl speaks to)

.PHONY: install
install: ## Install the CRDs.
	$(TOOL) kustomize build config/crd | $(KUBECTL) apply --server-side --force-conflicts -f -

.PHONY: deploy
deploy: ## Install the CRDs and the operator, or upgrade them. IMG=... names another image, CONFIG=... another overlay.
	hack/no-wider.sh "$(KUBECTL)" "$(TOOL) kustomize build $(CONFIG)"
	@# What somebody has changed meanwhile, say the number of replicas, is not a reason to stop halfway.
	$(TOOL) kustomize build $(CONFIG) | \
		sed 's|image: registry.example.com/bucketoperator:v0.1.0|image: $(IMG)|' | \
		$(KUBECTL) apply --server-side --force-conflicts -f -

.PHONY: undeploy
undeploy: ## Remove the operator, by the same CONFIG; refused while custom resources exist. The CRDs stay.
	hack/no-objects.sh "$(KUBECTL)"
	@# Before its rights, or it could not end its work and give back the lease.
	$(KUBECTL) delete deployment bucketoperator-controller-manager --namespace=bucketoperator-system --ignore-not-found --cascade=foreground
	$(TOOL) kustomize build $(CONFIG) | \
		$(KUBECTL) delete --ignore-not-found -l 'app.kubernetes.io/component!=crd' -f -

.PHONY: uninstall
uninstall: ## Remove the CRDs; refused while custom resources exist.
	hack/no-objects.sh "$(KUBECTL)"
	$(TOOL) kustomize build config/crd | $(KUBECTL) delete --ignore-not-found -f -
