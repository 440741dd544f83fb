# Each target prepares the virtual environment it needs by itself.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RLLIB := $(VENV)-rllib
PEERS := $(VENV)-peers

.DEFAULT_GOAL := help
.PHONY: help demo train test test-rllib lint docs bench bench-compare soak test-matrix clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' Makefile | expand -t 14

demo: $(READY) ## train a small agent in minutes and duel it
	$(BIN)/python experiments/train_ppo.py --preset demo
	@echo "the model, the learning curve (curve.png) and the duels are in runs/demo"

train: $(READY) ## train an agent for longer
	$(BIN)/python experiments/train_ppo.py --preset train

# Several threads in each of several processes only get in one another's way.
test test-rllib soak: export OMP_NUM_THREADS := 1

test: $(READY) ## run the tests
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-rllib: $(RLLIB)/.ready ## run the tests of RLlib, in an environment of its own
	$(RLLIB)/bin/python -m pytest tests/test_rllib.py

lint: $(READY) ## check style, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: $(READY) ## build the documentation into docs/_build, warnings being errors
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build

bench: $(READY) $(PEERS)/.ready ## measure the speed, and other libraries' beside it
	$(BIN)/python experiments/benchmark.py --peers $(PEERS)/bin/python

bench-compare: $(READY) ## compare the speed of two revisions: BASE=main [HEAD=topic]
	$(BIN)/python experiments/compare_revisions.py $(BASE) $(HEAD)

soak: $(READY) ## run the long tests
	$(BIN)/python -m pytest -n auto --dist loadgroup -m soak --hypothesis-profile soak

test-matrix: $(READY) ## run the core's tests on the other Pythons and on the oldest dependencies
	$(BIN)/python tests/matrix.py

clean: ## remove the environment, build products and caches; runs/ stays
	rm -rf .venv .venv-peers .venv-rllib dist docs/_build docs/api .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml constraints.txt
	@echo "installing into $(VENV): some minutes, 2 GB"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]'
	touch $@

# Ray asks for a Gymnasium of its own; all else is as it is pinned.
$(RLLIB)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(RLLIB)
	grep -v '^gymnasium==' constraints.txt > $(RLLIB)/constraints.txt
	$(RLLIB)/bin/python -m pip install --quiet --constraint $(RLLIB)/constraints.txt --editable '.[rllib,dev]'
	touch $@

# A peer that can't be installed costs only its own row.
$(PEERS)/.ready: experiments/peers_constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m experiments.peers --install
	touch $@
