# A thin skin over the command line: 'skewproof --help' says what each of these does.

# Variables; 'make help' says which of them each target takes. What is empty is left to the command's own defaults.
# NAME alone is not taken from the environment, which on some systems has one that names the machine.
NAME    := rolling-upgrade
BACKEND ?= local
SUBJECT ?=
FROM    ?=
TO      ?=
SERVERS ?=
OUT     ?=
# With BACKEND=existing: the file that names the servers, a context for each.
KUBECONFIG ?=
# Which scenarios, in Ginkgo's language of labels.
LABELS   ?=
# For 'make test-kind': a regular expression over the names of tests; all on kind if empty.
ON_KIND  ?=
# What the nodes of kind can run.
VERSIONS ?= v1.36.3 v1.37.1
# Where 'make image' writes to.
IMAGE    ?= bin/kube-apiserver-reference.tar
# The tag that 'make release' builds, such as v0.1.0, or any commit; the current commit if empty.
VERSION  ?=
# How many runs at a time. Each needs a processor and 2 GB of memory.
PARALLEL ?=
# each (a control run for every scenario) or few (the quickest for each invariant).
CONTROLS ?=
# 1: invariants beyond the KEP count as well.
STRICT   ?=
# 1: what findings explain passes; 0: it fails; a file name: findings of one's own explain violations, too.
KNOWN    ?= 1
# For 'make fuzz': one package, else all that have fuzzers; and how long for each fuzzer.
PKG      ?=
FUZZTIME ?= 1m

# Without debug information, like the servers: so that go compiles what the program, its tests and the servers share only once.
COMPILE := -trimpath -gcflags=all=-dwarf=false

# All unit tests. Those of ./internal/e2e run real servers.
UNIT := $$(go list ./... | grep -vxF -e "$$(go list ./internal/e2e)")
# Without cgo, 'make build' has compiled much of what tests need. Less frequent garbage collection takes a quarter off simulations.
UNIT_ENV := CGO_ENABLED=0 GOGC=400 GOMEMLIMIT=1GiB
# For 'make e2e': a regular expression over the names of tests to leave out.
SKIP ?=
SMOKE = CGO_ENABLED=0 .ci/tests -v 'on real servers' $(COMPILE) -count=1 -timeout 60m -skip 'OnKind$(if $(SKIP),|$(SKIP))' ./internal/e2e

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCI    := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
ACTIONLINT  := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# For 'make upstream-e2e': direct, old or balancer; and a regular expression over the names of specs.
PATH_THROUGH ?=
FOCUS        ?=
# The directory of an earlier 'make upstream-e2e PATH_THROUGH=direct', whose results are taken.
DIRECT       ?=
# A page that gets what was found, such as docs/clients.md.
PAGE ?=

# The flags that commands have in common.
OUT_FLAG      := $(if $(OUT),--out $(OUT))
PARALLEL_FLAG := $(if $(PARALLEL),--parallel $(PARALLEL))
KNOWN_FLAG    := $(if $(filter-out 0 false,$(KNOWN)),--known$(if $(filter-out 1,$(KNOWN)),=$(KNOWN)))
STRICT_FLAG   := $(if $(STRICT),--strict=$(STRICT)) $(KNOWN_FLAG)
PLAN_FLAGS    := $(if $(SUBJECT),--subject $(SUBJECT)) $(if $(FROM),--from $(FROM)) $(if $(TO),--to $(TO)) $(if $(SERVERS),--servers $(SERVERS)) $(OUT_FLAG)
EXISTING_FLAG := $(if $(filter existing,$(BACKEND)),$(if $(KUBECONFIG),--kubeconfig $(KUBECONFIG)))

.DEFAULT_GOAL := help
.PHONY: help scenario announce build test test-all race e2e e2e-all planted net corpus deviations mutants-judge conformance smoke matrix upstream-e2e clients bench mutants fuzz image release kind-images test-kind kind-clean alarms cost load lint lint-more fmt clean

help: ## Show the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  \1\t/' | expand -t 17
	@echo '  In brackets: variables that the target takes, such as make scenario NAME=quiet SUBJECT=reference. KUBECONFIG is for BACKEND=existing; with STRICT=1 invariants beyond the KEP count as well; with KNOWN=0 what findings explain fails as well.'

scenario: announce build ## Run a scenario and leave a report [NAME BACKEND SUBJECT FROM TO SERVERS OUT STRICT KNOWN KUBECONFIG]
	bin/skewproof run $(NAME) --backend $(BACKEND) $(EXISTING_FLAG) $(PLAN_FLAGS) $(STRICT_FLAG)

# A first run says at once what takes minutes, before it compiles anything.
announce:
	@if [ "$(BACKEND)" = local ] && [ ! -e bin/skewproof ] && [ ! -e "$${XDG_CACHE_HOME:-$$HOME/.cache}/skewproof" ]; then \
		echo "This is a first run. It does the following, in this order:"; \
		echo "  1. compiles skewproof (about a minute on two CPUs)"; \
		echo "  2. simulates $(NAME), and shows a first verdict (seconds)"; \
		echo "  3. gets the servers, by download or by building them (up to 10 minutes), and runs $(NAME) on them"; \
	fi

# The settings of the garbage collector for go, like those in internal/binaries/gocommand.go.
COLLECTOR := $(if $(GOGC)$(GOMEMLIMIT),,$(shell awk -v processors=$$(nproc) '/^MemAvailable:/ { m = int($$2 / 1024 / (processors + 1)); \
	if (m >= 1024) print "GOGC=off GOMEMLIMIT=" (m < 2048 ? m : 2048) "MiB" }' /proc/meminfo 2>/dev/null))

build: ## Build bin/skewproof; it is linked statically, so that kind's nodes can run it too
	CGO_ENABLED=0 $(COLLECTOR) go build $(COMPILE) -o bin/skewproof ./cmd/skewproof

CONFORM = bin/skewproof conformance --backend $(BACKEND) $(EXISTING_FLAG) $(PLAN_FLAGS) $(STRICT_FLAG) $(PARALLEL_FLAG)

conformance: build ## Run the conformance suite [BACKEND SUBJECT FROM TO SERVERS OUT LABELS CONTROLS PARALLEL STRICT KNOWN KUBECONFIG]
	$(CONFORM) $(if $(LABELS),--labels '$(LABELS)') $(if $(CONTROLS),--controls $(CONTROLS))

smoke: build ## Run the smoke set of it, with the quickest negative controls [the same but for LABELS and CONTROLS]
	$(CONFORM) --labels smoke --controls few

matrix: build ## Scenarios over pairs of versions and subjects, as one table [BACKEND SUBJECT OUT PARALLEL KNOWN]
	bin/skewproof matrix --backend $(BACKEND) $(if $(SUBJECT),--subjects $(SUBJECT)) $(OUT_FLAG) $(PARALLEL_FLAG) $(KNOWN_FLAG)

upstream-e2e: build ## Run Kubernetes' own end-to-end tests against two versions [SUBJECT PATH_THROUGH FOCUS DIRECT FROM TO OUT]
	bin/skewproof upstream-e2e $(if $(PATH_THROUGH),--path $(PATH_THROUGH)) $(if $(SUBJECT),--subject $(SUBJECT)) $(if $(FOCUS),--focus '$(FOCUS)') $(if $(DIRECT),--direct $(DIRECT)) $(if $(FROM),--from $(FROM)) $(if $(TO),--to $(TO)) $(OUT_FLAG)

clients: build ## What kubectl and client libraries can do through an older server, as a table [FROM TO OUT PAGE]
	bin/skewproof clients $(if $(FROM),--from $(FROM)) $(if $(TO),--to $(TO)) $(OUT_FLAG) $(if $(PAGE),--page $(PAGE))

bench: build ## Run the smoke set, or NAME, ten times: does any verdict differ? [NAME BACKEND SUBJECT FROM TO SERVERS OUT PARALLEL]
	bin/skewproof bench $(if $(filter command,$(origin NAME)),$(NAME),--labels smoke) --runs 10 --backend $(BACKEND) $(PLAN_FLAGS) $(PARALLEL_FLAG)

test: ## Run all unit tests without the race detector, and one real rolling upgrade: at most 15 minutes once the servers are cached
	status=0; \
	$(UNIT_ENV) .ci/tests 'unit tests' -vet=off $(COMPILE) -timeout 30m $(UNIT) || status=1; \
	CGO_ENABLED=0 .ci/tests -v 'on real servers' $(COMPILE) -count=1 -timeout 60m ./internal/e2e -run '^TestRollingUpgrade$$' || status=1; \
	exit $$status

test-all: ## Run the same unit tests with the race detector, also in the modules of kube-apiservers, and the smoke set on real servers: more than an hour
	status=0; \
	.ci/tests 'unit tests' -race -timeout 90m $(UNIT) || status=1; \
	CGO_ENABLED=0 .ci/tests -v 'in the modules of kube-apiservers' $(COMPILE) -count=1 -timeout 60m ./internal/binaries \
		-run '^TestTheReferenceInTheModulesOfReleases$$' -args -in-modules || status=1; \
	$(SMOKE) || status=1; \
	exit $$status

race: ## Run the unit tests of packages that start goroutines with the race detector
	status=0; \
	.ci/tests 'with the race detector' -race -vet=off -timeout 30m $$(awk '!/^#/ && NF == 1' .ci/race-packages) || status=1; \
	awk '!/^#/ && NF == 2' .ci/race-packages | while read -r package tests; do \
		choice=-run; case $$tests in '!'*) choice=-skip ;; esac; \
		.ci/tests "with the race detector, $$package" -race -vet=off -timeout 30m "$$package" $$choice "$${tests#!}" </dev/null || exit 1; \
	done || status=1; \
	exit $$status

e2e: ## Run the smoke set of tests on real servers; what this machine cannot run is skipped with the reason [SKIP]
	$(SMOKE)

e2e-all: ## The same with every scenario, not the smoke set alone: nearly two hours
	CGO_ENABLED=0 go test -v $(COMPILE) -count=1 -timeout 240m -skip OnKind ./internal/e2e -args -all

planted: ## Plant defects in the reference, one at a time, and search for each on real servers (an hour); writes docs/planted.md [SEEDS]
	CGO_ENABLED=0 go test -v $(COMPILE) -count=1 -timeout 0 ./internal/e2e -run '^TestPlantedDefectsInRealServers$$' -args -planted=$(or $(SEEDS),20)

# The net under the judge and the simulator (docs/lab/net.md). None of its parts starts a server.
LAB = cd internal/lab && $(UNIT_ENV) go test $(COMPILE) -count=1 -timeout 60m

net: ## Judge the corpus and all deviations, and measure the faults, in at most 10 minutes; prints one table
	$(LAB) -run '^(TestFaults|TestSimulatedCorpus|TestSavedCorpus|TestDeviations)$$' -args -full -measure

corpus: ## Judge the simulated catalogue and all saved histories, and show what differs from what is expected
	$(LAB) -run 'Corpus$$' -args -full

deviations: ## Alter histories in named ways, and write what the judge says of each to docs/lab/deviations.md
	$(LAB) -run '^TestDeviations$$' -args -full -update

mutants-judge: ## Change one place at a time of the judge, the engine and the run, and write which test notices it to docs/lab/mutants.md
	$(LAB) -run '^TestMutantsOfTheJudge$$' -args -mutants . -update

alarms: ## Make every alarm of plans rise on real servers, and measure how soon (six minutes); writes internal/upgrade/alarms.json
	CGO_ENABLED=0 go test -v $(COMPILE) -count=1 -timeout 20m ./internal/e2e -run '^TestAlarms$$' -args -alarms

cost: ## Compare what requests cost with the reference and with the builtin proxy, in CLUSTERS clusters (about two minutes each) [CLUSTERS]
	CGO_ENABLED=0 go test -v $(COMPILE) -count=1 -timeout 60m ./internal/e2e -run '^TestCost$$' -args -cost $(or $(CLUSTERS),8)

load: ## Compare what callers get beside ordinary loads, with the reference and with the builtin proxy, in PAIRS pairs of clusters (five minutes each); their directories go to OUT [PAIRS OUT]
	CGO_ENABLED=0 go test -v $(COMPILE) -count=1 -timeout 120m ./internal/e2e -run '^TestLoad$$' -args -load $(or $(PAIRS),3) $(if $(OUT),-load-runs $(abspath $(OUT)))

image: ## Make the image of a kube-apiserver with the reference proxy, for 'docker load' or 'ctr images import' [VERSIONS=v1.37.1 IMAGE]
	mkdir -p $(dir $(IMAGE))
	CGO_ENABLED=0 go run $(COMPILE) ./kindconfigs/image -reference $(IMAGE) $(lastword $(VERSIONS))

release: ## Make the archives and checksums of a tag, in bin/release; the same commit gives the same bytes [VERSION]
	.ci/release $(VERSION)

kind-images: ## Make the images of the kind backend [VERSIONS="v1.36.3 v1.37.1"]
	CGO_ENABLED=0 go build $(COMPILE) -o bin/kind-images ./kindconfigs/image && bin/kind-images $(VERSIONS)

test-kind: ## Run scenarios on kind clusters, where Docker and the images are there [ON_KIND]
	CGO_ENABLED=0 .ci/tests -v 'on kind' $(COMPILE) -count=1 -timeout 60m ./internal/e2e -run '$(or $(ON_KIND),OnKind)'

kind-clean: build ## Remove what runs on kind that were killed have left behind
	bin/skewproof kind-clean

mutants: ## Plant defects in the proxy, one at a time, and show after how many random schedules each is found; with RATES=10000, how many of so many find each rare one [RATES]
	CGO_ENABLED=0 go test $(COMPILE) ./sim/mutants -count=1 -timeout 60m -v $(if $(RATES),-run '^$$' -bench '^BenchmarkRates$$' -benchtime 1x -args -rates=$(RATES),-args -full)

fuzz: ## Fuzz what parses input, one fuzzer after the other, with the race detector [PKG FUZZTIME]
	@set -e; for package in $(or $(PKG),$$(git grep -l '^func Fuzz' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's,^,./,')); do \
		for fuzzer in $$(git grep -h -o '^func Fuzz[A-Za-z]*' -- "$$package/*_test.go" | sed 's/^func //'); do \
			echo "$$package $$fuzzer"; go test -race -run '^$$' -fuzz "^$$fuzzer\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$package"; \
		done; \
	done

lint: ## Check formatting, and run go vet, staticcheck and actionlint
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi
	CGO_ENABLED=0 go vet $(COMPILE) ./...
	CGO_ENABLED=0 go vet $(COMPILE) -tags planted ./proxy/apiserver
	CGO_ENABLED=0 GOFLAGS='$(COMPILE)' go run $(STATICCHECK) ./...
	go run $(ACTIONLINT) .github/workflows/*.yaml

lint-more: ## Run the linters of .golangci.yaml (once built: minutes, later only what has changed)
	go run $(GOLANGCI) run ./...

fmt: ## Format the code
	gofmt -w $$(git ls-files '*.go')

clean: ## Remove what was built and all runs; cached binaries stay ('bin/skewproof binaries prune' removes those)
	rm -rf bin _out
