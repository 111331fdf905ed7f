# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
DEMO := .venv-demo
DEV := .venv

.PHONY: demo test lint lock base zoo docs goldens clean

demo: $(DEMO)/installed
	$(DEMO)/bin/traincast forecast resnet50 --on T4 --on V100-SXM2-16GB --on RTX-3090 --on A100-SXM4-80GB --batch 64,128 \
		--precision amp-fp16 --samples 1281167 --epochs 90 --html demo-forecast.html
	$(DEMO)/bin/traincast scale resnet50 --on p3.16xlarge --gpus 1,2,4,8 --batch 256 --samples 1281167 --epochs 90 \
		--html demo-scale.html
	$(DEMO)/bin/traincast layers resnet50 --batch 32 --by kind --html demo-layers.html
	$(DEMO)/bin/traincast memory resnet50 --batch 64 --optimizer adam --on T4 --html demo-memory.html

test: lint
	$(DEV)/bin/pytest -n 2

lint: $(DEV)/installed
	$(DEV)/bin/ruff format --check .
	$(DEV)/bin/ruff check .
	$(DEV)/bin/mypy
	$(DEV)/bin/lint-imports

# Captures the zoo again and writes src/traincast/data/zoo/*.trace.
zoo: $(DEV)/installed
	$(DEV)/bin/python -m lab.build_zoo

# Writes the generated pages again: command reference and zoo table.
docs: $(DEV)/installed
	$(DEV)/bin/python docs/generate.py

# Asks the stored answers again, says what moved and by how much, and stores them.
goldens: $(DEV)/installed
	$(DEV)/bin/python tests/goldens/renew.py

$(DEMO)/installed: pyproject.toml
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

# What the lock holds and nothing else, then torch, whose file has no one hash: an unpinned one pulls gigabytes of CUDA.
$(DEV)/installed: pyproject.toml requirements-dev.lock
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(DEV)/bin/python -m pip install --quiet --no-deps --require-hashes --requirement requirements-dev.lock
	$(DEV)/bin/python -m pip install --quiet torch==2.13.0
	$(DEV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Resolves the dependencies anew in a fresh environment and writes what came out.
lock:
	rm -rf $(DEV)
	$(PYTHON) -m venv $(DEV)
	$(DEV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(DEV)/bin/python -m pip install --quiet torch==2.13.0
	$(DEV)/bin/python -m pip install --quiet --group dev --editable .
	$(DEV)/bin/python .ci/lock.py

# The base install, without torch: with the lowest versions that it claims, and with the newest.
base:
	$(PYTHON) .ci/base.py lowest
	$(PYTHON) .ci/base.py newest

clean:
	rm -rf $(DEMO) $(DEV) .venv-lowest .venv-newest demo-*.html .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
