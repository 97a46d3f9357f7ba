# terapush: `make help` lists what there is.

GO       ?= go
BINARY   := bin/terapush
# One set of flags for the binary, its tests and the linter, so that nothing is compiled for one and again for the other.
# The race detector and godror need cgo.
export CGO_ENABLED := 0
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath
# By default every raced test binary sleeps a second before it ends.
export GORACE := atexit_sleep_ms=10
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
LDFLAGS  := -s -w -X github.com/terapush/terapush/internal/cli.release=$(VERSION)
TOOL     := $(GO) tool -modfile=tools/go.mod
SERVERS  := scripts/servers
# make check vets. With servers: their URLs in the environment, so that no test that needs one is skipped.
WITH     := eval "$$($(SERVERS) env)" &&
TEST     := TERAPUSH_TEST_LONG=1 $(GO) test -vet=off
# What makes a release: goreleaser, and for the list of modules in a binary cyclonedx-gomod.
PACKERS  := github.com/goreleaser/goreleaser/v2@v2.15.1 github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
# What make test needs besides: the C compiler for the race detector and for godror.
TOOLS    := cc promtool buildah libaio chromium curl ip
# The race detector makes tests two to ten times as slow. It is for packages that start goroutines or share something
# between them, more than a sync.Pool, a sync.Once or a sync.Map; in the others, and in bench and e2e, which drive a
# built binary, it would see nothing.
packages  = $(shell $(GO) list $$(grep -rlE --include='*.go' $(1) | xargs -n 1 dirname | sort -u | sed 's|^|./|'))
# Not instrumented: what shares nothing between goroutines and would take most of the time.
PURE     := $(patsubst %,-gcflags=%=-race=false,github.com/terapush/terapush/internal/dataset github.com/klauspost/compress/... \
	github.com/xi2/xz github.com/goccy/go-yaml/... regexp/... encoding/gob)
RACED     = $(call packages,--exclude='*_test.go' '^\s*"sync/atomic"|\<sync[.](Mutex|RWMutex|WaitGroup|Cond)\>|^\s*go |[.]Go\>' internal pkg)
SERVED    = $(filter-out $(RACED),$(call packages,TERAPUSH_TEST_ e2e internal))
ALONE     = $(filter-out $(RACED) $(SERVED),$(shell $(GO) list ./...))

.PHONY: help build build-godror demo test test-tools test-alone test-raced test-served test-quick check bench bench-postgres bench-mysql bench-s3 bench-databend bench-doris bench-load bench-oracle bench-micro terabyte terabyte-ci soak servers-up servers-down image image-godror pages snapshot release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## one static binary in bin/
	$(GO) build -ldflags '$(LDFLAGS)' -o $(BINARY) ./cmd/terapush

build-godror: ## bin/terapush-godror, which loads Oracle's own client library: needs a C compiler
	CGO_ENABLED=1 $(GO) build -tags godror -ldflags '$(LDFLAGS)' -o $(BINARY)-godror ./cmd/terapush

demo: build ## push a gigabyte into a real PostgreSQL that is fetched, started and removed again
	$(BINARY) demo

# Nothing is run twice. Servers are installed beside the tests that need none. What is raced is linked anew, which takes two cores
# for minutes: beside it a server may not answer within the 30 seconds that a push gives it.
test: ## everything, with real servers and faults, and with the race detector where goroutines meet
	@$(MAKE) --no-print-directory test-tools
	@$(MAKE) --no-print-directory -j2 servers-up test-alone
	@$(MAKE) --no-print-directory test-raced
	@$(MAKE) --no-print-directory test-served

test-tools: # what is missing is named at once, or installed
	@scripts/tools $(TOOLS) postgres mariadb
	@$(SERVERS) check

test-alone: build
	$(TEST) $(ALONE)

test-raced: export GOGC := 200 # what the race detector makes of garbage is most of it
test-raced:
	$(WITH) CGO_ENABLED=1 $(TEST) -race $(PURE) -parallel 4 -timeout 30m $(RACED)
	CGO_ENABLED=1 $(TEST) -race $(PURE) -tags godror -run 'Godror|ClientLibrary|Explain' ./internal/backends/oracle

test-served: build
	$(WITH) TERAPUSH_BINARY=$(CURDIR)/$(BINARY) $(TEST) -timeout 30m $(SERVED)

test-quick: ## what needs no server and is not long, in a minute and a half
	$(GO) test -p 4 ./...

check: ## format, vet, lint, module files, spelling, workflows; all of them fail
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt wants:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) mod tidy -diff
	$(GO) mod verify
	$(GO) run -modfile=tools/go.mod github.com/golangci/misspell/cmd/misspell -error $$(git ls-files '*.md')
	$(TOOL) actionlint -shellcheck= -pyflakes=
	sed -n '/^# .github.workflows.nightly.yml$$/,/^```$$/{/^```$$/!p}' docs/REPORTS.md | $(TOOL) actionlint -shellcheck= -pyflakes= -
	$(TOOL) golangci-lint run
	CGO_ENABLED=1 $(GO) vet -tags godror ./internal/backends/oracle/...

bench: build servers-up ## client CPU beside a plain write loop, and real servers beside their own command lines
	scripts/tools iperf3
	$(WITH) $(GO) run ./bench

bench-postgres: build servers-up ## the part of bench about PostgreSQL
	scripts/tools iperf3
	$(WITH) $(GO) run ./bench -only postgres

bench-mysql: build servers-up ## the part of bench about MySQL and MariaDB
	scripts/tools iperf3
	$(WITH) $(GO) run ./bench -only mysql

bench-s3: build servers-up ## the part of bench about object stores
	scripts/tools iperf3
	$(WITH) $(GO) run ./bench -only s3

bench-databend: build servers-up ## the part of bench about Databend
	scripts/tools iperf3
	$(WITH) $(GO) run ./bench -only databend

bench-doris: build ## the part of bench about Doris, of which there is no server to measure
	scripts/tools iperf3
	$(GO) run ./bench -only doris

bench-load: build servers-up ## the part of bench about files: terapush load beside the servers' own command lines
	$(WITH) $(GO) run ./bench -only load

bench-oracle: build ## the methods of Oracle against a server: make bench-oracle TARGET=oracle://user:password@host/service
	@$(GO) run ./bench -only oracle -target '$(TARGET)'

terabyte: build ## 2^31 rows of 512 bytes into the sink by load-data and copy, and nowhere, each killed and resumed twice: twenty minutes
	$(GO) run ./bench -terabyte 2147483648

terabyte-ci: build ## the same with 2^25 rows
	$(GO) run ./bench -terabyte 33554432

bench-micro: ## fill, encode, stamp and array binds, with allocations
	$(GO) test -run '^$$' -bench . -benchmem ./internal/dataset ./internal/encode ./internal/source ./internal/backends/oracle

soak: SHELL := /bin/bash -o pipefail
soak: build servers-up ## the fault cases for longer, and a hundred kill -9 of the client per database: a quarter of an hour on two cores
	$(WITH) TERAPUSH_SOAK=1 TERAPUSH_BINARY=$(CURDIR)/$(BINARY) $(GO) test -timeout 2h -parallel 4 -v \
		-run 'Bound|Chaos|Crash|Cut|Disk|Kill|Lost|Lose|Resume|Signal|Stale|Stuck' ./e2e | grep -v '^=== '

servers-up: ## install and start PostgreSQL, MariaDB, MySQL, OceanBase's seekdb, Databend's engine, an S3 server, and TiDB where it is built, for tests, on free ports of this clone's own
	@$(SERVERS) up

servers-down: ## stop them
	$(SERVERS) down

image: build ## the container image, with buildah or docker
	scripts/image

image-godror: build-godror ## the image with godror, to which Oracle's Instant Client is added when it runs
	scripts/image godror

pages: build # completions and man pages, for packages
	mkdir -p bin/share/completions bin/share/man
	for shell in bash zsh fish; do $(BINARY) completion $$shell >bin/share/completions/terapush.$$shell || exit; done
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BINARY) man bin/share/man

snapshot: ## archives, deb and rpm of the commit at hand, for Linux and macOS, in bin/dist
release: ## publish them: for a tag, with GITHUB_TOKEN
snapshot release:
	for tool in $(PACKERS); do GOBIN=$(CURDIR)/bin/tools $(GO) install $$tool || exit; done
	PATH=$(CURDIR)/bin/tools:$$PATH goreleaser release --clean $(if $(filter snapshot,$@),--snapshot)

clean: ## remove what build made
	rm -rf bin
