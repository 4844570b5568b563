# The project's own targets. Every one of them sets up what it needs; none skips what is missing, it fails.
#
#   make demo          five short takes on the simulated rig, each with its known outcome (sets up first)
#   make setup         .venv with pinned dependencies and the Rust core in release mode
#   make test          formatter, linters, types, import contract, Rust tests, Python tests; no root, no outside data
#   make test-system   what needs root or Debian packages
#   make test-real     what needs the recordings of FIRSTHAND_DATA (default ../shared/data)
#   make test-aarch64  the core's tests on emulated Arm (installs a cross compiler and an emulator)
#   make soak          the random campaigns of the tests with large counts (hours, not minutes)
#   make schemas       writes docs/schemas anew from the models
#   make bench         prints the figures of docs/bench.md with a column "here", writes build/bench.json

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: setup demo test lint test-rust test-python test-system test-real test-aarch64 soak bench schemas fmt clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FIRSTHAND_DATA ?= $(abspath ../shared/data)
export FIRSTHAND_DATA
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# A worker is a process; two threads of linear algebra in each would only fight for the cores.
export OPENBLAS_NUM_THREADS := 1

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name 'Cargo.toml')
PY_SOURCES := firsthand_edge tests bench

setup: $(VENV)/.core

$(VENV)/.deps: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed, this is " + sys.version)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	touch $@

$(VENV)/.core: $(VENV)/.deps pyproject.toml $(RUST_SOURCES)
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet >/dev/null
	touch $@

demo: setup
	$(BIN)/firsthand-edge demo --rig configs/sim.toml --state build/demo

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	$(BIN)/ruff format --check --quiet $(PY_SOURCES)
	$(BIN)/ruff check --quiet $(PY_SOURCES)
	$(BIN)/mypy --no-error-summary
	$(BIN)/python -m mypy.stubtest firsthand_edge._core --concise
	$(BIN)/lint-imports --no-cache

test-rust: setup
	cargo test --workspace --exclude firsthand-py --locked --quiet

# Tests of processes mostly wait; the others compute meanwhile.
ORDINARY := -m 'not system and not real and not soak'
OF_PROCESSES := tests/cli tests/daemon

test-python: setup
	mkdir -p build
	$(BIN)/python -m pytest $(ORDINARY) $(OF_PROCESSES) >build/test-of-processes.log 2>&1 & others=$$!; \
	$(BIN)/python -m pytest $(ORDINARY) $(OF_PROCESSES:%=--ignore=%) tests || failed=yes; \
	wait $$others || failed=yes; \
	cat build/test-of-processes.log; \
	test -z "$${failed:-}"

test: lint test-rust test-python

# The core's tests as an Arm rig would run them, under emulation: the same figures to the bit.
ARM := aarch64-unknown-linux-gnu

test-aarch64:
	command -v aarch64-linux-gnu-gcc qemu-aarch64 >/dev/null || { echo 'installing gcc-aarch64-linux-gnu qemu-user'; apt-get -q update && apt-get -qy install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user; }
	rustup target add $(ARM)
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu' \
	cargo test --release --locked --quiet --package firsthand-sync --target $(ARM)

test-system: setup
	command -v mkfs.ext4 mount >/dev/null || { echo 'installing e2fsprogs mount'; apt-get -q update && apt-get -qy install e2fsprogs mount; }
	$(BIN)/python -m pytest -m system tests

test-real: setup
	$(BIN)/python -m pytest -m real tests

soak: setup
	cargo test --workspace --exclude firsthand-py --release --locked --quiet -- --ignored --nocapture
	FUZZ_ROUNDS=100000 FUZZ_SEED=$$(date +%s) cargo test --workspace --exclude firsthand-py --locked --quiet --test fuzz
	$(BIN)/python -m pytest -m soak -o timeout=0 tests

bench: setup $(VENV)/.rivals
	$(BIN)/python -m bench

$(VENV)/.rivals: bench/requirements.txt $(VENV)/.deps
	$(BIN)/python -m pip install --quiet --requirement bench/requirements.txt
	touch $@

schemas: setup
	$(BIN)/python -m firsthand_edge.qa.schemas docs/schemas

fmt: setup
	cargo fmt --all
	$(BIN)/ruff format --quiet $(PY_SOURCES)
	$(BIN)/ruff check --quiet --fix $(PY_SOURCES)

clean:
	rm -rf build target $(VENV) firsthand_edge/_core*.so
