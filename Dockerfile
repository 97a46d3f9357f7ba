# The static binary and nothing else: no shell, no libc, no account but a number.
#
#   docker build .                      compiles in a Go image; --build-arg GO=golang@sha256:… names one by its digest
#   docker build --target prebuilt .    takes bin/terapush and pulls nothing: what scripts/image does
ARG GO=docker.io/library/golang:1.26-trixie

FROM scratch AS base
LABEL org.opencontainers.image.source=https://github.com/terapush/terapush \
      org.opencontainers.image.licenses=Apache-2.0

# Two empty folders that the binary's user may write to: in an image from scratch nobody else makes them.
COPY --chown=65532:65532 deploy/image/state /state
COPY --chown=65532:65532 deploy/image/tmp /tmp

# The state of runs. Mount a volume here to resume a run in another container.
ENV XDG_STATE_HOME=/state TMPDIR=/tmp

# A number, since there is no /etc/passwd to look a name up in, and so that Kubernetes can see that it is not root.
USER 65532:65532

# Certificates: the binary carries the usual authorities itself; others come by --tls-ca and a mounted file.
ENTRYPOINT ["/terapush"]

FROM base AS prebuilt
COPY bin/terapush /terapush

FROM ${GO} AS build
WORKDIR /src
# All of it, with .git: that is where the version and the revision come from.
COPY . .
RUN make build

FROM base
COPY --from=build /src/bin/terapush /terapush
