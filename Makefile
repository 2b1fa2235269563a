# From a fresh clone, with Python 3.11 or newer: each target installs what it needs into .venv, once.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq  # errors alone

OP := all_gather_gemm
SHAPE := m=64,n=3584,k=8192,world=8
DB := build/search.db
NEWEST := .venv-newest$(TRITON)
ARTIFACT := build/$(OP)__mi300x8.json

# Workers share one cache of compiled kernels, Triton's own. One file runs in one worker, so that its fixtures are made and its kernels
# compiled once; in order, since the longest files come early. One worker more than cores: some tests sleep until a deadline is over.
CORES := $(shell nproc 2>/dev/null || echo 2)
WORKERS := $(shell expr $(CORES) + 1)
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Workers, and the processes that tests start, would compile every source anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help search test drill thorough artifacts mutants fleet engines newest docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

search: .venv/.tune ## the main job without a GPU: search, train, export, select, report (resumes where it stopped)
	@mkdir -p build
	@echo "== MODELLED: no GPU is used. Times for mi300x8 below are predicted by the analytic model, none is measured."
	$(BIN)/tftune search $(OP) --shapes paper --on model --target mi300x8 --mode both --pool 800 --db $(DB)
	$(BIN)/tftune train $(OP) --db $(DB) --target mi300x8
	$(BIN)/tftune export $(OP) --db $(DB) --target mi300x8 --out $(ARTIFACT)
	$(BIN)/tftune select $(OP) $(SHAPE) --artifact $(ARTIFACT) --allow-modelled
	$(BIN)/tftune report --db $(DB) --out build/report
	@echo "== MEASURED: the same shape, answered by the shipped artifact, trained on times measured on 8x H200."
	$(BIN)/tftune select $(OP) $(SHAPE) --target h200x8

test: .venv/.test ## the tests and the guards (about 10 minutes on 2 cores); what is skipped is listed at the end, with why
	@echo "about 10 minutes on 2 cores, $(CORES) here; tests that are skipped are listed at the end, with the reason"
	$(BIN)/pytest $(PARALLEL) --durations 12 -rs

drill: .venv/.test ## searches that are killed and resume, or whose trials hang, crash and lie; and what a selection may take
	$(BIN)/pytest -m drill -n 2 --dist loadfile --no-loadscope-reorder --ignore tests/test_dispatch.py
	$(BIN)/pytest -m drill tests/test_dispatch.py

thorough: WORKERS := $(shell expr $(CORES) + 2)  # mutants wait for deadlines most of the time
thorough: .venv/.test ## whole matrices of which `make test` runs a part: all worlds, mutants, evaluations of small artifacts
	$(BIN)/pytest -m thorough $(PARALLEL) --durations 12
	$(BIN)/python tests/run_mutants.py

artifacts: .venv/.test ## train and judge every shipped artifact again, before one ships (about 10 minutes on 2 cores)
	$(BIN)/pytest -m "artifacts or thorough" tests/test_committed.py -n $(CORES) --durations 12

mutants: .venv/.test ## plant each known fault in a copy of the tree: its test must fail (about 3 minutes on 2 cores)
	$(BIN)/python tests/run_mutants.py

fleet: .venv/.fleet ## a search over three Ray nodes of this machine, of which one is killed
	$(BIN)/pytest -m drill tests/test_fleet_search.py

engines: .venv-engines/.engines ## the plug-ins in the newest vLLM and SGLang, without a GPU (about 5 minutes, and 0.4 GB to install once)
	.venv-engines/bin/python -m pytest tests/engines

newest: $(NEWEST)/.newest ## kernels and compile_pass on the newest torch and its Triton; with TRITON=3.9.0 on that Triton
	@$(NEWEST)/bin/python -c "import torch, triton; print('torch', torch.__version__, 'Triton', triton.__version__)"
	$(NEWEST)/bin/python -m pytest $(PARALLEL) tests/test_interpreter.py tests/test_emitted.py tests/test_memory_order.py \
	  tests/test_far_offsets.py $(wildcard tests/test_contract_*.py tests/test_compile_pass*.py)

docs: .venv/.docs ## build the pages and the API reference as a site, in build/docs; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -j auto -b html docs build/docs
	@echo "open build/docs/index.html"

clean: ## remove what was built; .venv stays
	rm -rf build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/pip:
	@command -v $(PYTHON) >/dev/null || { echo "there is no $(PYTHON); install Python 3.11 or newer, or name it, as in: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("tftune needs Python 3.11 or newer, and $(PYTHON) is %d.%d; name a newer one, as in: make PYTHON=python3.12 $(MAKECMDGOALS)" % sys.version_info[:2])'
	$(PYTHON) -m venv .venv

.venv/.tune: pyproject.toml | $(BIN)/pip
	@echo "installing tftune and its tuner into .venv (about a minute)"
	$(PIP) install -e '.[tune]'
	@touch $@

# triton is named because a CPU-only torch does not ask for it; the kernels are compiled and emulated without a GPU.
.venv/.test: pyproject.toml constraints.txt | .venv/.tune
	@echo "installing torch, triton and the test tools into .venv (a few minutes)"
	$(PIP) install -c constraints.txt -e '.[tune,test]' torch triton
	@touch $@

.venv/.fleet: pyproject.toml | .venv/.test
	@echo "installing Ray into .venv"
	$(PIP) install -e '.[fleet]'
	@touch $@

.venv/.docs: pyproject.toml | .venv/.test
	@echo "installing Sphinx into .venv"
	$(PIP) install -e '.[docs]'
	@touch $@

# No constraints: what `pip install torch` brings on the day that the folder is made. TRITON names another one, put in the place of torch's own.
$(NEWEST)/.newest: Makefile pyproject.toml
	@echo "installing the newest torch into $(NEWEST) (a few minutes, 6 GB)"
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip --quiet install --upgrade -e '.[tune,test]' torch triton
	$(if $(TRITON),$(NEWEST)/bin/python -m pip --quiet install --no-deps triton==$(TRITON))
	@touch $@

# The engines beside a torch without CUDA: only their Python runs, with those of their packages that it imports.
ENGINES := vllm==0.33.0 sglang==0.5.23
ENGINE_NEEDS := psutil pyzmq cbor2 urllib3 aiohttp requests openai openai_harmony pybase64 cachetools msgspec uvloop py-cpuinfo \
  prometheus_client xgrammar fastapi partial_json_parser llguidance orjson ipython transformers regex pillow tqdm cloudpickle einops

.venv-engines/.engines: Makefile pyproject.toml constraints.txt
	@echo "installing vLLM and SGLang into .venv-engines (a few minutes)"
	$(PYTHON) -m venv .venv-engines
	.venv-engines/bin/python -m pip --quiet install -c constraints.txt -e . torch triton numpy pytest hypothesis $(ENGINE_NEEDS)
	.venv-engines/bin/python -m pip --quiet install --no-deps $(ENGINES)
	@touch $@
