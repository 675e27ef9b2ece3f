# The operator's image, for those who have Docker: `make image` gives the same
# without. A static program, certificates, and nothing else, run by nobody special.
ARG GO_IMAGE=golang:1.26
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETOS=linux TARGETARCH
WORKDIR /src
# The modules change less often than the code: this layer is kept.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# What --version prints. There is no git in here to ask.
ARG VERSION=
RUN GOOS=${TARGETOS} GOARCH=${TARGETARCH} make build VERSION="${VERSION}"

FROM ${BASE_IMAGE}
ARG VERSION=devel
LABEL org.opencontainers.image.title="bucketoperator" \
      org.opencontainers.image.description="Buckets at a provider outside the cluster, as objects inside it" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"
COPY --from=build /src/bin/bucketoperator /bucketoperator
WORKDIR /
USER 65532:65532
ENTRYPOINT ["/bucketoperator"]
