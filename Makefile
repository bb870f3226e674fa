# Two commands matter: `make rehearsal` and `make test`. Both do all the set-up; `make help` lists the rest.

STACK  ?= eks
# The stack file for rehearsals; default: Pulumi.$(STACK).yaml.
CONFIG_FILE ?=
# Labels of scenarios.
LABELS ?= walk-through
PYTHON ?= python3

# All checkouts share one cache folder. Nothing else outside this checkout is written.
export KARPSTACK_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/karpstack
export UV_CACHE_DIR    := $(KARPSTACK_CACHE)/uv
# No hardlinks: an edited file below .venv would change the cache, and so every other checkout's environment.
export UV_LINK_MODE    := copy
export PYTHONPATH      := $(CURDIR)
# matplotlib keeps a list of fonts.
export MPLCONFIGDIR    := $(KARPSTACK_CACHE)/matplotlib
# Checkouts share mypy's results: reading the SDKs takes longer than reading this project.
export MYPY_CACHE_DIR  := $(KARPSTACK_CACHE)/mypy
# Some machines stop Python from caching compiled files; every command would then compile its imports again.
unexport PYTHONDONTWRITEBYTECODE

BIN  := .venv/bin
# With the version, which the installed package reports.
READY := .venv/.ready-$(shell { cat requirements.lock; grep '^version = ' pyproject.toml; } | cksum | cut -d' ' -f1)
# A .venv that the project did not create, or a link, is neither emptied nor removed.
OUR_VENV = { [ ! -L .venv ] && [ -f .venv/.made-by-karpstack ]; }
# An empty folder below build/. A folder that the project did not create, or a link, is not removed.
EMPTY = [ ! -L build ] && { [ ! -e $(1) ] || { [ ! -L $(1) ] && [ -f $(1)/.made-by-karpstack ]; }; } || { echo "error: $(1) was not made by this project and would be removed; move it away" >&2; exit 1; }; rm -rf $(1) && mkdir -p $(1) && touch $(1)/.made-by-karpstack
CONFIG_OPTION = $(if $(CONFIG_FILE),--config-file "$(CONFIG_FILE)")
# Rehearsals wait half of the time, so there are two workers more than cores. With many more, stories would be late.
WORKERS = $$(($$(getconf _NPROCESSORS_ONLN) + 2))

# A misspelt variable would have no effect, so it is an error.
VARIABLES := STACK CONFIG_FILE LABELS PYTHON NAME PACKAGE STACK_FILE WORKERS KARPSTACK_CACHE KARPSTACK_ENGINES KARPSTACK_KEEP_BUILDS KARPSTACK_PASS CASES
UNKNOWN := $(filter-out $(VARIABLES),$(foreach each,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(each)))),$(each))))
$(if $(filter-out MAKE% -%,$(UNKNOWN)),$(error $(filter-out MAKE% -%,$(UNKNOWN)) is no variable of this Makefile, so it would have no effect; those are $(VARIABLES)))

.DEFAULT_GOAL := help
.PHONY: help setup setup-of-all environment engines rehearsal soak test pytest lint format bench docs lock outdated facts goldens pack release-check clean clean-cache

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

# `setup-of-all` also builds the Karpenter of other clouds, which takes minutes.
setup: ## Install the Python environment and build the engines of STACK, side by side
	@$(MAKE) --no-print-directory -j2 environment engines STACK_FILE=$(or $(CONFIG_FILE),Pulumi.$(STACK).yaml)

# Tests of all clouds need this.
setup-of-all:
	@$(MAKE) --no-print-directory -j2 environment engines

environment: $(READY)

$(READY): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; name another with make PYTHON=...")'
	@[ ! -e .venv ] || $(OUR_VENV) || { echo "error: .venv was not made by this project and would be removed; move it away" >&2; exit 1; }
	@echo "Installing the Python environment into .venv"
	@rm -rf .venv && mkdir .venv && touch .venv/.made-by-karpstack
	@$(PYTHON) -m venv .venv
	@mkdir -p -m 700 "$$KARPSTACK_CACHE"
	@for each in go matplotlib mypy uv; do [ -e "$$KARPSTACK_CACHE/$$each" ] || \
		{ mkdir -p -m 700 "$$KARPSTACK_CACHE/$$each" && touch "$$KARPSTACK_CACHE/$$each/.made-by-karpstack"; }; done
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > .venv/uv.lock
	@$(BIN)/python -m pip install --quiet --no-cache-dir --no-deps --disable-pip-version-check --require-hashes -r .venv/uv.lock
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --offline --editable .
	@touch $@
	@echo "Python environment ready"

engines: ## Pull the missing engines from KARPSTACK_ENGINES into the cache, or build them
	@$(PYTHON) -m karpstack.rehearsal.engines $(STACK_FILE)

rehearsal: setup ## Create STACK (default eks) in a simulated account, run its stories with one of LABELS, write the report, remove STACK
	@$(BIN)/karpstack run $(STACK) --labels $(LABELS) $(CONFIG_OPTION)

soak: setup ## Like rehearsal, with every scenario: also the long ones, the faults and a week
	@$(BIN)/karpstack run $(STACK) --labels all $(CONFIG_OPTION)
	@$(BIN)/karpstack run $(STACK) --labels days --days --report build/rehearsal/$(STACK)-days $(CONFIG_OPTION)

test: setup-of-all ## Run lint and all tests that need no cloud
	@$(MAKE) --no-print-directory -j2 lint docs pytest

# In this order: the rehearsals, a worker for what shares a stack (tests/conftest.py), and then the rest, which fills the
# gaps; of that, first what waits for programs. Without `exec`, a SIGTERM would end the shell, and the tests would run on.
pytest:
	@exec $(BIN)/python -m pytest -q --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder tests/rehearsal tests/programs tests/unit tests/policies

lint: environment ## ruff, mypy --strict, ansible-lint (production), gofmt
	@$(BIN)/ruff format --check --quiet . || { echo "Run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --exclude '^karpstack/review/'
	@MYPYPATH=policies:tests/policies $(BIN)/mypy policies karpstack/review tests/policies
	@[ -e .ansible ] || { mkdir .ansible && touch .ansible/.made-by-karpstack; }
	@PATH="$(CURDIR)/$(BIN):$$PATH" ANSIBLE_HOME=.ansible $(BIN)/ansible-lint --offline -q playbooks
	@$(BIN)/python -m karpstack.rehearsal.engines --lint

docs: environment ## Build the documentation as a site into build/docs; a broken link is an error
	@$(call EMPTY,build/docs)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The documentation is in build/docs/index.html"

format: environment ## Format the Python code
	@$(BIN)/ruff check --quiet --fix . && $(BIN)/ruff format --quiet .

# NAME is one of tests/bench: burst, clock, kills, removal, spread, stories (after `make soak`), truths, whatif.
bench: setup-of-all ## Print the figures of docs/contributing/figures.md, or those of NAME, measured in one run
	@$(BIN)/python -m tests.bench$(if $(NAME),.$(NAME)) $(if $(filter stories,$(NAME)),build/rehearsal/$(STACK)) $(CASES)

# PACKAGE is one to move, such as pulumi==3.260.0; the pins of the others stay where they still fit.
lock: environment ## Write requirements.lock from pyproject.toml
	@$(BIN)/uv pip compile --quiet $(if $(PACKAGE),--upgrade-package "$(PACKAGE)") --universal --generate-hashes --no-annotate --all-extras --group dev --custom-compile-command "make lock" pyproject.toml -o requirements.lock

outdated: environment ## List all pins and the newest available versions
	@$(BIN)/python -m karpstack.rehearsal.outdated

facts: setup-of-all ## Write karpstack/karpenter/facts/ and schemas/ again: instance types, prices and CRDs of the pinned engines
	@$(BIN)/python -m karpstack.generators

goldens: environment ## Write all golden files and generated pages again
	@$(BIN)/python -m pytest -q tests/unit --update-goldens
	@$(BIN)/python policies/reference.py
	@$(BIN)/python -m karpstack.scale_test.scenarios.reference
	@$(BIN)/python -m karpstack.snapshot.reference
	@$(BIN)/python -m karpstack.snapshot.examples
	@$(BIN)/karpstack whatif schema > karpstack/whatif/schema.json

# Without what looks at previews or writes documents, and of karpstack/karpenter/ only what the rules read.
pack: ## Write the complete policy pack to build/pack, for `pulumi policy publish`
	@$(call EMPTY,build/pack)
	@tar -C policies -cf - --exclude=__pycache__ --exclude=./reference.py --exclude=./eks.json --exclude=./aks-*.json . | tar -C build/pack -xf -
	@tar -cf - --exclude=__pycache__ --exclude=karpstack/karpenter/crds.py --exclude=karpstack/karpenter/schemas karpstack/__init__.py karpstack/karpenter | tar -C build/pack -xf -
	@sed -i.bak 's|virtualenv: .*|virtualenv: .venv|' build/pack/PulumiPolicy.yaml && rm build/pack/PulumiPolicy.yaml.bak
	@grep -oE '^(pulumi|pulumi-policy|cronsim|pyyaml)==[0-9.]+' requirements.lock > build/pack/requirements.txt
	@echo /.venv/ > build/pack/.gitignore  # `pulumi policy publish` leaves out what it names
	@echo "The pack is in build/pack"

# The lowest versions get an environment of their own, with the tools of the tests in the versions of the checkout.
release-check: environment pack ## Build the wheel, the source distribution, the collection and the pack into build/release, and check them
	@$(call EMPTY,build/release)
	@$(BIN)/uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir build/release
	@$(BIN)/ansible-galaxy collection build playbooks --output-path build/release
	@tar -C build --exclude=.made-by-karpstack -czf build/release/karpstack-policies.tar.gz pack
	@$(BIN)/python -m pytest -q tests/release tests/unit/test_pins.py tests/unit/test_package.py tests/unit/scale_test/test_modules.py tests/programs/test_package.py tests/programs/test_collection.py tests/programs/test_policy_pack.py
	@$(BIN)/uv venv --quiet --python $(BIN)/python build/release/lowest
	@$(BIN)/uv pip install --quiet --python build/release/lowest/bin/python --resolution lowest-direct --all-extras -r pyproject.toml $$(sed -nE 's/^ *"((pytest|hypothesis)[a-z-]*==[0-9.]+)",/\1/p' pyproject.toml)
	@build/release/lowest/bin/python -m pytest -q -p no:cacheprovider -W ignore tests/unit/cli tests/unit/test_settings.py tests/unit/test_eks.py tests/unit/test_aks.py tests/unit/snapshot
	@rm -rf build/release/lowest && cd build/release && sha256sum karpstack* > SHA256SUMS && cat SHA256SUMS

clean: ## Stop this checkout's stacks; list and remove what the project created in it
	@$(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) -m karpstack.rehearsal.cleaning checkout

clean-cache: ## List and remove what the project created in the cache folder, with the engines
	@$(PYTHON) -m karpstack.rehearsal.cleaning cache
