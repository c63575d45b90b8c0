# The front door. On a bare Debian 12 `make demo` and `make test` are all one needs: each installs what is missing.

BUILD ?= build
PREFIX ?= /usr/local
PRESET ?= release

all: build

help: ## this text
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 18

deps: ## install the Debian packages that building and testing need
	@tools/deps build test demo

# Internal: installs only when something is missing.
ready-%:
	@tools/deps --if-missing $*

configure: ready-build
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

build: configure ## build/bin/muster, build/lib/libmuster.{so,a}, build/python
	@cmake --build $(BUILD)

test: ready-test build ## every test that takes under a minute and needs no cluster
	@tools/limited - tests tools/run-tests $(BUILD)

test-kubernetes: ready-test build ## tests against a real kube-apiserver and etcd, which it builds first, once (needs Go)
	@MUSTER_BUILD=$(abspath $(BUILD)) $$(tools/python-with-torch pytest) -m pytest -q test/kubernetes

demo: ready-demo build ## train a PyTorchJob on Fashion-MNIST, Master 1 + Worker 1
	@tools/demo $(BUILD)

demo-elastic: ready-demo build ## train while workers and the coordinator are killed; the weights are those of a quiet run
	@tools/demo-elastic $(BUILD)

check: ready-test ## layers, banned functions, opening comments, paths that documents name, format
	@tools/check

format: ## reformat the C code
	@tools/check --fix

bench: ready-bench build ## the benchmark tables, ours beside the peers
	@bench/run $(BUILD)

wheels: build ## BUILD/wheels: muster, elasticdl_client and elasticdl_api for pip, as local files
	@tools/wheels $(BUILD)

bench-kubernetes: ready-test build ## what a real kube-apiserver takes through our client, and what muster operator needs of it
	@MUSTER_BUILD=$(abspath $(BUILD)) bench/kubernetes/floors
	@MUSTER_BUILD=$(abspath $(BUILD)) bench/kubernetes/operator

install: build ## PREFIX=/usr/local
	@cmake --install $(BUILD) --prefix "$(PREFIX)"

clean: ## remove the build folders
	@rm -rf build build-*

.PHONY: all help deps configure build test test-kubernetes demo demo-elastic check format bench bench-kubernetes wheels install clean
