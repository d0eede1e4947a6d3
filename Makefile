# Two words for a newcomer: `make demo` shows it working, `make test` proves it.
# Every target sets up .venv by itself, and only when requirements.lock or pyproject.toml changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test check peers system bench soak picture lock clean

help:
	@echo "make demo     teach, save, list and play a motion on the simulated robot (under 2 minutes)"
	@echo "make test     formatting, lint, types and all tests (under 8 minutes)"
	@echo "make check    the fast part of make test"
	@echo "make bench    measured speed, as ratios against a peer run beside it"
	@echo "make soak     the long campaigns: crashes, losses, a million broken datagrams"
	@echo "make picture  draw docs/demo.svg and docs/demo.png anew"
	@echo "make lock     renew requirements.lock after pyproject.toml changed"
	@echo "make clean    remove .venv and everything made"

$(READY): requirements.lock pyproject.toml scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup "$(VENV)"

demo: $(READY)
	@$(BIN)/rote demo

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: check peers system
	$(BIN)/pytest -n 3 --dist worksteal --cov --cov-report=
	$(BIN)/python scripts/coverage_gate.py

# Other people's clients, for the tests of interoperability; without them those are skipped.
peers: $(READY)
	-@VENV="$(VENV)" scripts/peers

# tshark, tcpdump and Chromium, where they may be installed.
system:
	@scripts/system

bench: $(READY) peers
	$(BIN)/python -m benchmarks

soak: $(READY)
	$(BIN)/pytest -m soak --timeout 3600 -s -p no:xdist

picture: $(READY)
	$(BIN)/rote demo --out rote-demo --svg docs/demo.svg
	cp rote-demo/taught-and-played.png docs/demo.png

lock: $(READY)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-header --all-extras --group dev pyproject.toml -o requirements.lock
	VENV="$(VENV)" scripts/peers --lock

clean:
	rm -rf $(VENV) .peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* dist build rote-demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
