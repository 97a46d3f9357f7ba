# One static binary and nothing else: no shell, no libc, no user but a number.
FROM docker.io/library/golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /terapush ./cmd/terapush

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /terapush /terapush
# The state of runs: mount a volume here to resume a run in another container.
ENV XDG_STATE_HOME=/state TMPDIR=/tmp
USER 65532:65532
ENTRYPOINT ["/terapush"]
