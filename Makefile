# One command each: `make test` (what CI runs), `make demo` (the main job on a fresh machine).
# Both make their own virtual environment; all that must be there is Python 3.10 or newer, with venv.

VENV := .venv
BIN := $(VENV)/bin
PACKAGES := 'pyyaml>=6' 'jsonschema>=4' 'platformdirs>=3' 'filelock>=3.12'
TOOLS := 'pytest>=8' 'ruff>=0.6' 'mypy>=1.10' types-PyYAML types-jsonschema 'zstandard>=0.22' 'mcp>=2' 'jinja2>=3.1'

.PHONY: test demo e2e e2e-again record bench format clean

test: $(VENV)/tools.stamp
	$(BIN)/ruff format --check obsmem tests bench observational_memory.py
	$(BIN)/ruff check obsmem tests bench observational_memory.py
	$(BIN)/mypy
	$(BIN)/python -m pytest

demo: $(VENV)/packages.stamp
	@$(BIN)/python observational_memory.py demo fixtures/demo

e2e: $(VENV)/tools.stamp
	$(BIN)/python -m pytest -m e2e tests/e2e

e2e-again: $(VENV)/tools.stamp
	$(BIN)/python -m pytest -m e2e tests/e2e --last-failed --last-failed-no-failures none

# Writes the fixtures that the real programs' payloads and transcripts are compared with; look at the diff.
record: $(VENV)/tools.stamp
	OBSMEM_E2E_RECORD=1 $(BIN)/python -m pytest -m e2e tests/e2e

bench: $(VENV)/tools.stamp
	$(BIN)/python -m bench.hook
	$(BIN)/python -m bench.compact
	$(BIN)/python -m bench.storm
	$(BIN)/python -m bench.faults --short
	$(BIN)/python -m bench.speed
	$(BIN)/python -m bench.limits --quick

format: $(VENV)/tools.stamp
	$(BIN)/ruff format obsmem tests bench observational_memory.py
	$(BIN)/ruff check --fix obsmem tests bench observational_memory.py

$(VENV)/packages.stamp: pyproject.toml
	@PYTHON="$(PYTHON)" sh tools/make-venv.sh $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PACKAGES)
	@touch $@

$(VENV)/tools.stamp: $(VENV)/packages.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TOOLS)
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
