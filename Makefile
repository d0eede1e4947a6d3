# Two words for a newcomer: `make demo` shows it working, `make test` proves it.
# Every target sets up .venv by itself, and only when requirements.lock or pyproject.toml changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Tests and tools start Python many times: let it keep the compiled files.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo demo-site test test-fast coverage check format docs peers system page bench soak picture screens lock \
  lowest audit release-check clean

help:
	@echo "make demo     teach, save, list and play a motion on the simulated robot (under 2 minutes)"
	@echo "make test-fast  the tests that start no program and wait for nothing (under 2 minutes on two cores)"
	@echo "make check    format, lint, types, spelling, of Python and of the page"
	@echo "make test     make check and all tests (about 10 minutes on two cores)"
	@echo "make format   write the format that make check asks for"
	@echo "make docs     the documentation as a site, in site/, with the demo in it"
	@echo "make demo-site  the page as a demo without a server: plain files in site/demo, at most 5 MB"
	@echo "make coverage the same tests, and whether they reach what they must"
	@echo "make bench    measured speed beside peers, into docs/performance.md; wants an idle machine"
	@echo "make soak     the long campaigns: crashes, losses, a million broken datagrams, broken safety code"
	@echo "make page     build the pendant's page for this checkout; the set-up does it by itself"
	@echo "make screens  take the pictures of the pendant in docs/pictures again"
	@echo "make picture  draw docs/demo.svg and docs/demo.png again"
	@echo "make lock     renew requirements.lock after pyproject.toml changed"
	@echo "make lowest   the tests with the lowest versions that pyproject.toml allows, in .venv-lowest"
	@echo "make audit    known vulnerabilities of the locked Python and npm packages"
	@echo "make release-check  build the archives in a clean clone and try the wheel on every Python there is"
	@echo "make clean    remove .venv and everything made"

$(READY): requirements.lock pyproject.toml scripts/setup
	@PYTHON="$(PYTHON)" scripts/setup "$(VENV)"

demo: $(READY)
	@$(BIN)/rote demo

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@$(BIN)/python scripts/generate/sync_stub.py
	@$(BIN)/python scripts/generate/track_edits_stub.py
	$(BIN)/mypy
	$(BIN)/codespell
	@scripts/page_check

# Write what `make check` asks for.
format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	@scripts/page_check --write

# The documentation as a site in site/; a warning is an error. (--quiet would hide the warnings from --strict.)
docs: $(READY)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	-@$(MAKE) --no-print-directory demo-site

# The page with a robot, sample motions and an editor in the browser alone; the documentation links to it.
demo-site: $(READY)
	-@VENV="$(VENV)" scripts/model
	@$(BIN)/python scripts/demo_site.py

# What is fetched waits for the network while what is checked computes. More workers than processors, because many
# tests wait; those whose limits in real time need an idle computer run last, one at a time.
test: $(READY)
	@$(MAKE) --no-print-directory -j 4 --output-sync=recurse check peers system page
	@$(BIN)/pytest --workers $(WORKERS) -m "not soak"

test-fast: $(READY)
	@$(BIN)/pytest -q --workers 2 --fast

# Number of test processes. They share one collection, so that more of them cost little.
WORKERS ?= 6

# The same tests, counted line by line and branch by branch, which takes twice as long.
coverage: $(READY) peers system page
	$(BIN)/pytest -n 4 --dist worksteal --cov --cov-report=
	$(BIN)/python scripts/coverage_gate.py

# Other people's clients, for the tests of interoperability; without them those are skipped. One of them is
# built against a system package, so those come first.
peers: $(READY) system
	-@VENV="$(VENV)" scripts/peers/clients
	-@VENV="$(VENV)" scripts/peers/dds
	-@scripts/peers/foxglove

# tshark, tcpdump, Chromium, zsh and fish, where they may be installed.
system:
	@scripts/system

# The page that `rote web` serves, from page/; without npm it says so, and the API has no page.
page: $(READY)
	-@scripts/page
	-@VENV="$(VENV)" scripts/model

bench: $(READY) peers
	-@VENV="$(VENV)" scripts/peers/benchmarks
	$(BIN)/python -m benchmarks --write

soak: $(READY)
	$(BIN)/pytest -n 2 --hypothesis-profile search --timeout 3600 tests/wire tests/session tests/motion tests/sim tests/capture
	$(BIN)/pytest -m soak --timeout 3600 -s -p no:xdist
	$(BIN)/python scripts/mutants.py

picture: $(READY)
	$(BIN)/rote demo --out rote-demo --svg docs/demo.svg
	cp rote-demo/taught-and-played.png docs/demo.png

screens: $(READY) page
	VENV="$(VENV)" scripts/media/screens
	VENV="$(VENV)" scripts/media/moving_picture

lock: $(READY)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-header --all-extras --group dev --group docs pyproject.toml -o requirements.lock
	VENV="$(VENV)" scripts/peers/clients --lock

# The lowest versions of what rote needs, by pyproject.toml, with the newest tools that test it.
LOWEST := .venv-lowest
TESTS ?= tests
lowest: $(READY)
	$(BIN)/uv pip compile --quiet --python-version 3.11 --resolution lowest-direct --no-header --no-annotate \
	  --all-extras pyproject.toml -o $(VENV)/lowest.pins
	$(BIN)/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-header --all-extras --group dev \
	  -c $(VENV)/lowest.pins pyproject.toml -o $(VENV)/lowest.lock
	LOCK="$(VENV)/lowest.lock" PYTHON="$(PYTHON)" scripts/setup "$(LOWEST)"
	$(LOWEST)/bin/pytest --workers $(WORKERS) -m "not soak and not quiet" -o filterwarnings=default $(TESTS) # old packages warn of new ones

audit: $(READY)
	@$(BIN)/python scripts/release/audit.py

release-check: $(READY)
	@$(BIN)/python scripts/release/release_check.py

clean:
	rm -rf $(VENV) .venv-* .peers site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* dist build rote-demo \
	  page/node_modules src/rote/web/static src/rote/web/model
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
