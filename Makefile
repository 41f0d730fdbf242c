# Everything here needs only python3 (3.11 or newer, with venv) and make. Each target makes its own
# .venv from the lock file first, and makes it anew when the lock or the interpreter changes.
#
#   PYTHON=python3.12   another interpreter
#   ARGS="-k money"     more arguments for pytest (test, soak) or names of benchmarks (bench)

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
UV_COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(ARGS)

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help venv demo test soak lint format bench lock clean

help:
	@echo "make demo     close a simulated cluster and print where its money went"
	@echo "make test     run the tests (installs missing system packages where it may)"
	@echo "make lint     style, types, layers, and the commands that the documents name"
	@echo "make format   rewrite the sources in the project's style"
	@echo "make bench    run the benchmarks, JSON on stdout"
	@echo "make soak     run the long tests"
	@echo "make lock     bring the lock files up to pyproject.toml (ARGS=--upgrade for all)"
	@echo "make clean    remove .venv, caches and the demo"

venv:
	@command -v $(PYTHON) >/dev/null || { \
		echo "$(PYTHON) is missing: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) .ci/make_venv.py

demo: venv
	@$(BIN)/runbill demo demo

test: venv
	@$(SHELL) tests/system_packages.sh
	@# A worker per core: threads of polars would only stand in each other's way.
	@POLARS_MAX_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist loadfile $(ARGS)

soak: venv
	@$(SHELL) tests/system_packages.sh
	@RUNBILL_SOAK=1 $(BIN)/python -m pytest --numprocesses auto -m "soak or hypothesis" $(ARGS)

lint: venv
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest --quiet tests/test_docs.py

format: venv
	@$(BIN)/ruff check --fix-only
	@$(BIN)/ruff format

bench: venv
	@$(BIN)/python benchmarks/run.py $(ARGS)

lock: venv
	@$(UV_COMPILE) --output-file requirements.lock
	@$(UV_COMPILE) --group dev --constraints requirements.lock --output-file requirements-dev.lock

clean:
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo dist
