# The static binary and nothing else: no shell, no libc, no account but a number.
#
# There is no stage that compiles. It would need a Go image from a registry, which the machines that run the tests do
# not have, and would compile a second time what `make build` has compiled and tested. `make image` builds both.
FROM scratch

# Two empty folders that the binary's user may write to: in an image from scratch nobody else makes them.
COPY --chown=65532:65532 deploy/image/state /state
COPY --chown=65532:65532 deploy/image/tmp /tmp
COPY bin/terapush /terapush

# The state of runs. Mount a volume here to resume a run in another container.
ENV XDG_STATE_HOME=/state TMPDIR=/tmp

# A number, since there is no /etc/passwd to look a name up in, and so that Kubernetes can see that it is not root.
USER 65532:65532

# Certificates: the binary carries the usual authorities itself; others come by --tls-ca and a mounted file.
ENTRYPOINT ["/terapush"]
