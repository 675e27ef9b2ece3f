# The operator's image: a static binary and nothing else, run by nobody special.
ARG GO_IMAGE=golang:1.26
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG TARGETOS=linux TARGETARCH
WORKDIR /src
# The modules change less often than the code: this layer is kept.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Neither paths nor the build id nor the state of git get in: same source, same binary.
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o /bucketoperator ./cmd/manager

FROM ${BASE_IMAGE}
COPY --from=build /bucketoperator /bucketoperator
USER 65532:65532
ENTRYPOINT ["/bucketoperator"]
