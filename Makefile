# CI calls nothing but these targets. Needed on the machine: python3 (3.11 or newer, with venv), git, make.

PYTHON ?= python3
JOBS ?= auto
PYTEST_ARGS ?=

PY := .venv/bin/python
PYTEST := $(PY) -m pytest -q -rfEs -n $(JOBS)
BACKSTOP := $(PY) -m backstop
STAMP := .venv/.installed
OLDEST := .venv-oldest/.installed
BIGQUERY := .venv-bigquery/.installed
PEERS := .venv-bench/.installed
MESH_PEERS := .venv-bench-mesh/.installed
GUARD_BENCH_ARGS ?=
HAMMER ?= long

AGENT := vendor-onboarding
SPECIMEN := examples/vendor_onboarding
LEDGER := ledgers/vendor-onboarding.jsonl
INTENTS := out/vendor-onboarding-v3.intents.jsonl
ON_SPECIMEN := --config backstop.yaml --agent $(AGENT) --sandbox process

# $(call expect_blocked,CODE,OUTPUT): a crash of the interpreter exits with 1 too, so the words count as well.
expect_blocked = if [ $(1) -ne 1 ] || ! grep -q 'BLOCKED' $(2); then \
	echo "make $@: expected BLOCKED and exit 1, got exit $(1)" >&2; exit 1; fi

# The project's own environment is used, whatever the caller has activated.
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH PIP_USER UV_PROJECT_ENVIRONMENT
export UV_PYTHON_DOWNLOADS = never
export UV_SYSTEM_CERTS = 1

.DEFAULT_GOAL := help
.PHONY: help install fmt lint type imports test e2e rootless property golden replay gate control diff bench bench-guard bench-mesh demo mesh hammer docs check coverage clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## set up .venv from the lock file (every other target does so by itself)
	@$(PY) -c 'import sys, backstop; print("Ready: backstop", backstop.__version__, "on Python", sys.version.split()[0])'

# The stamp holds the checksums of its inputs: files that are newer and yet equal need no network.
$(STAMP): pyproject.toml uv.lock
	@if [ -f $@ ] && cksum pyproject.toml uv.lock | cmp -s - $@; then touch $@; exit 0; fi; \
	sh .ci/setup "$(PYTHON)" && cksum pyproject.toml uv.lock > $@

# The oldest framework that is replayed, for the tests: few packages differ from those of .venv.
$(OLDEST): $(STAMP)
	@if [ -f $@ ] && cmp -s $(STAMP) $@; then touch $@; exit 0; fi; \
	sh .ci/setup "$(PYTHON)" oldest && cp $(STAMP) $@

# The emulator of BigQuery, for the tests: on a machine without Python 3.13 there is none, and they skip.
$(BIGQUERY): $(STAMP) .ci/bigquery .ci/bigquery.txt
	@.ci/bigquery

fmt: $(STAMP) ## format the code and apply safe fixes
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

lint: $(STAMP) ## ruff; actionlint, zizmor, hadolint and schemas on what GitHub and Docker read
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@.ci/lint-workflows

type: $(STAMP) ## mypy, strict, on package and tests
	@$(PY) -m mypy

imports: $(STAMP) ## the layers: imports point down only
	@.venv/bin/lint-imports --no-logo

test: $(OLDEST) $(BIGQUERY) ## all tests
	@$(PYTEST) $(PYTEST_ARGS)

e2e: $(STAMP) ## containers and the action, on a Docker daemon of our own (root; part of `make test`)
	@$(PYTEST) -m docker $(PYTEST_ARGS)

rootless: ## the gate in rootless podman on control groups v2, in an emulated machine (root; half an hour)
	@.ci/rootless

property: $(STAMP) ## the laws, attacked longer than in `make test`
	@HYPOTHESIS_PROFILE=ci $(PYTEST) tests/property

golden: $(STAMP) ## rewrite the golden files; review the diff
	@BACKSTOP_GOLDEN=rewrite $(PY) -m pytest -q tests/golden
	@git --no-pager diff --stat -- tests/golden

replay: $(STAMP) ## what v3 of the specimen would ask for, one intent a line
	@mkdir -p $(dir $(INTENTS))
	@$(BACKSTOP) replay $(ON_SPECIMEN) --candidate $(SPECIMEN)/v3 --out $(INTENTS)
	@cat $(INTENTS)

gate: $(STAMP) ## the main job: may v3 of the specimen ship? (no: exit 1)
	@mkdir -p out
	@$(BACKSTOP) gate $(ON_SPECIMEN) --candidate $(SPECIMEN)/v3 > out/gate.txt; code=$$?; cat out/gate.txt; \
	$(call expect_blocked,$$code,out/gate.txt); \
	echo; echo "Exit 1 is the answer: v3 must not ship. In CI this stops the deploy."

control: $(STAMP) ## the version that wrote the ledger must pass (exit 0)
	@$(BACKSTOP) gate $(ON_SPECIMEN) --candidate $(SPECIMEN)/v1

diff: replay ## the gate's arithmetic alone: the ledger against the intents of `make replay`
	@$(BACKSTOP) diff $(LEDGER) $(INTENTS) --config backstop.yaml --agent $(AGENT) > out/diff.txt; code=$$?; cat out/diff.txt; \
	$(call expect_blocked,$$code,out/diff.txt)

# The guard's peers, for the benchmark alone: nothing of the project needs them.
$(PEERS): $(STAMP) benchmarks/guard/requirements.txt
	@if [ -f $@ ] && cksum benchmarks/guard/requirements.txt | cmp -s - $@; then touch $@; exit 0; fi; \
	$(PY) -m venv --clear .venv-bench && \
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/guard/requirements.txt && \
	cksum benchmarks/guard/requirements.txt > $@

bench-guard: $(PEERS) ## the guard beside its peers: cost and incidents (8 minutes)
	@$(PY) -m benchmarks.guard.bench_guard $(GUARD_BENCH_ARGS)

$(MESH_PEERS): $(STAMP) benchmarks/mesh/requirements.txt
	@if [ -f $@ ] && cksum benchmarks/mesh/requirements.txt | cmp -s - $@; then touch $@; exit 0; fi; \
	$(PY) -m venv --clear .venv-bench-mesh && \
	.venv-bench-mesh/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/mesh/requirements.txt && \
	cksum benchmarks/mesh/requirements.txt > $@

bench-mesh: $(MESH_PEERS) ## the mesh beside graph libraries: radius, plan, memory, a million steps (3 minutes)
	@$(PY) -m benchmarks.mesh.bench_radius

demo: $(STAMP) ## workers killed in the middle of a mail: none goes twice
	@$(PY) -m examples.vendor_onboarding.demo

mesh: $(STAMP) ## trust breaks in a run of four agents: exactly what does not hold is made anew (KEEP=FOLDER leaves one to be recovered)
	@$(PY) -m examples.evidence_mesh.show $(if $(KEEP),--keep "$(KEEP)")

hammer: $(STAMP) ## the same at every point (15 minutes; HAMMER=short: one)
	@$(PY) -m benchmarks.hammer $(HAMMER)

bench: $(STAMP) ## figures, side by side in one run; never a test
	@$(PY) -m benchmarks

docs: $(STAMP) ## every link resolves, every error is explained
	@$(PY) -m pytest -q tests/architecture/test_docs.py

check: lint type imports coverage ## what CI runs

coverage: $(STAMP) ## all tests; every branch of the core, 95 % of the package
	@$(MAKE) --no-print-directory test PYTEST_ARGS="--cov --cov-report="
	@$(PY) -m coverage report --include='backstop/core/*' --fail-under=100
	@$(PY) -m coverage report --fail-under=95

clean: ## remove caches and output (the environments stay)
	@rm -rf out dist build htmlcov .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -path './.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +
