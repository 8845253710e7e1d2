# docsigma: every command sets up what it needs.
#   make demo    fit, embed and plot the embedded corpus (a few minutes), and a page of it
#   make test    lint, types and the quick tests, which build the documentation
#   make test-release    make test, then what takes long or measures time
#   make test-portable    numerical tests as other processors would run them
#   make test-recipes    the recipes of docs/interchange.md, with the systems they name
#   make load    ten minutes of mixed load on the service; wants MODEL=folder
#   make test-spark    embed on a local cluster of Spark; installs Java 17 and pyspark
#   make sealed FOLDER=path    everything that is measured, on corpora of your own
#   make setup lint docs bench figures clean

# The newest that is here goes first; one that the pinned torch has no wheel for is passed
# over. PYTHON=python3.12 takes that one alone.
PYTHON ?= python3.13 python3.12 python3.11 python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := demo

# The corpora that tests and experiments use; they are optional.
ifneq ($(wildcard ../shared/data),)
export DOCSIGMA_DATA ?= $(abspath ../shared/data)
endif

# Tests that compare floating-point numbers, and the settings they must pass under: what
# torch and MKL do on processors without AVX-512 or AVX2, and sums in another order
# (tests use one thread where nothing else is set).
NUMERICAL := tests/kernels tests/estep tests/trainers tests/optimizers tests/parts tests/models \
	tests/classifiers tests/metrics tests/test_marginal_likelihood.py paper/tests/models paper/tests/classifiers
PORTABLE := ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2 \
	MKL_ENABLE_INSTRUCTIONS=SSE4_2 OMP_NUM_THREADS=4

.PHONY: setup demo test test-release test-portable test-recipes test-spark load sealed lint types unit browser docs bench figures clean

setup: $(STAMP)

$(STAMP): pyproject.toml paper/pyproject.toml constraints.txt
	@for python in $(PYTHON); do \
		$$python -c "import sys; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || continue; \
		$$python -m venv $(VENV) >/dev/null 2>&1 || continue; \
		$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade pip && \
		$(BIN)/python -m pip install --quiet --constraint constraints.txt torch && \
		$(BIN)/python --version && exit 0; \
		echo "$$python: not with this torch" >&2; rm -rf $(VENV); \
	done; echo "docsigma needs Python 3.11 or newer, with venv: tried $(PYTHON)" >&2; exit 2
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[all]" --editable ./paper --group dev
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/docsigma demo --out $(DEMO)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md Makefile docs src paper tests benchmarks
	$(BIN)/lint-imports --no-logo

types: $(STAMP)
	$(BIN)/mypy

# Page tests want a browser; where it cannot be installed they skip and say so.
browser:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1 || true

# A file stays with one of two workers: what its tests share is made once.
unit: $(STAMP) browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test: lint types unit

# One after the other: some measure time.
test-release: test
	$(BIN)/python -m pytest -m release

test-portable: $(STAMP)
	@failed=; for setting in $(PORTABLE); do \
		echo "$$setting"; \
		env $$setting $(BIN)/python -m pytest $(NUMERICAL) || failed="$$failed $$setting"; \
	done; \
	test -z "$$failed" || { echo "tests failed with:$$failed" >&2; exit 1; }

test-recipes: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group recipes
	$(BIN)/python -m pytest -m recipes tests/recipes tests/workers

load: $(STAMP)
	$(BIN)/python benchmarks/service_load.py $(MODEL) --json benchmarks/results/service.json

# Spark wants Java; both are installed here and not by setup.
test-spark: $(STAMP)
	@command -v java >/dev/null || { apt-get update -qq && apt-get install -y -qq openjdk-17-jre-headless; }
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[spark]"
	$(BIN)/python -m pytest -m spark tests/workers

bench: $(STAMP)
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/primitive.py

sealed: $(STAMP)
	$(BIN)/python benchmarks/sealed.py $(FOLDER)

# Every figure of the README and the pages, from the results that are here.
figures: $(STAMP)
	$(BIN)/python benchmarks/figures.py

clean:
	rm -rf $(VENV) site .cache $(DEMO) .pytest_cache .mypy_cache .ruff_cache
