# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN = .venv/bin
# The tests compile thousands of small programs, so XLA is asked to spend little on each, and not to split them to
# compile the pieces at once: both cores are busy. Without fused multiply-add, or two programs that are compared
# would round the same formula differently.
# A file's tests stay on one worker, or both would compile what they share; the files come as tests/conftest.py says.
# `make test-slow` and everything else run with what JAX has by default.
QUICKLY = OMP_NUM_THREADS=1 XLA_FLAGS="--xla_cpu_use_fusion_emitters=false --xla_cpu_max_isa=AVX \
	--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true \
	--xla_cpu_parallel_codegen_split_count=1"
# Bytecode is kept: the commands that the tests start would compile the package each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo federation-demo docs test check lint test-slow test-long test-oldest test-faults bench bench-parquet bench-gpu test-gpu test-mlflow test-flower bench-federation performance soak figures notebooks results format clean

demo: .venv/lab
	$(BIN)/mainstem demo

federation-demo: .venv/lab .venv/federation .venv/dashboard # where learning together wins; a hub and five sites
	$(BIN)/python -m examples.together

# The variable silences a notice: support of Material for MkDocs ends in May 2027, and Zensical follows it.
docs: .venv/docs # the site, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

test: check

lint: .venv/test # format, names, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src
	$(BIN)/lint-imports

check: .venv/test .venv/docs
	tools/browser.sh
	$(MAKE) --jobs 2 --output-sync lint docs
	$(QUICKLY) $(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not slow" --durations 40

test-slow: .venv/test # three at a time on two cores: many of them wait; -vv, for pyproject.toml has -q
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist worksteal -m "slow and not long and not mlflow and not flower" -vv

test-long: .venv/test # every theorem on 200 random instances: an hour
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -m long

test-oldest: # the quick tests with the oldest versions that pyproject.toml allows
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	grep -oE '"[a-z0-9-]+>=[0-9.]+' pyproject.toml | grep -v setuptools | tr -d '"' | sed 's/>=/==/' | sort -u > .venv-oldest/constraints.txt
	.venv-oldest/bin/pip install --quiet --disable-pip-version-check -c .venv-oldest/constraints.txt -e ".[test]"
	$(QUICKLY) .venv-oldest/bin/pytest -n 2 --dist loadfile -m "not slow" -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning # of old beside new

test-faults: .venv/test # the gate's tests must notice each of a list of faults
	$(QUICKLY) $(BIN)/python -m tests.faults

soak: .venv/test # clients come and go for an hour, with faults; and for an hour without, and without an alarm
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.federate.soak 60
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.federate.soak 60 peaceful

bench: .venv/bench
	$(BIN)/python -m benchmarks --json docs/performance/cpu.json

# An environment of its own: pfl-research wants older packages than constraints.txt, and Python before 3.13.
bench-gpu: .venv-gpu # on a machine with an NVIDIA GPU; 8 minutes on an H200
	.venv-gpu/bin/python -m benchmarks.gpu --json docs/performance/gpu.json

test-mlflow: .venv-mlflow # MLflow wants an older pyarrow than constraints.txt
	.venv-mlflow/bin/pytest -m mlflow tests/tracking

.venv-mlflow: pyproject.toml
	test -x .venv-mlflow/bin/python || $(PYTHON) -m venv .venv-mlflow
	.venv-mlflow/bin/pip install --quiet --disable-pip-version-check -e ".[test,mlflow]"
	touch $@

test-flower: .venv-flower # Flower wants other versions than constraints.txt
	FLWR_TELEMETRY_ENABLED=0 .venv-flower/bin/pytest --noconftest -W ignore -m flower tests/flower

.venv-flower: pyproject.toml
	test -x .venv-flower/bin/python || $(PYTHON) -m venv .venv-flower
	.venv-flower/bin/pip install --quiet --disable-pip-version-check -e ".[flower]" scikit-learn pytest
	touch $@

test-gpu: .venv-gpu # a GPU and a CPU draw the same samples
	.venv-gpu/bin/python -m tests.streams.on_a_gpu

.venv-gpu: pyproject.toml
	test -x .venv-gpu/bin/python || $(PYTHON) -m venv .venv-gpu
	.venv-gpu/bin/pip install --quiet --disable-pip-version-check -e ".[bench-gpu]"
	touch $@

bench-parquet: .venv/bench # 20 GB of Parquet files, generated, beside pyarrow's scan
	$(BIN)/python -m benchmarks.parquet 20

bench-federation: .venv/bench .venv/federation
	$(BIN)/python -m benchmarks.federation

figures: .venv/test # those of the README and of the docs
	$(BIN)/mainstem demo --folder demo
	cp demo/accuracy.png docs/images/accuracy.png
	$(BIN)/python -m tests.report.screenshot demo/report.html docs/images/report.png
	$(BIN)/python -m tests.federate.live_picture docs/images/live.png
	$(BIN)/python -m examples.gallery docs/images
	$(BIN)/mainstem reproduce fedomd-fig1-left
	cp runs/reproduce/fedomd-fig1-left/full/figure.png docs/images/bound.png

notebooks: .venv/test # executes the scripts of the notebooks, and writes what they show
	$(BIN)/python tools/notebooks.py

results: .venv/lab # docs/results.md: hours, and a GPU for MNIST; goes on where it stopped
	$(BIN)/mainstem reproduce all
	$(BIN)/python -m mainstem.papers.page

performance: .venv/lab # docs/performance.md, from what the benchmarks wrote; measures nothing
	$(BIN)/python -m benchmarks.page

format: .venv/test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-oldest .venv-gpu .venv-mlflow .venv-flower demo site

# One virtual environment; each stamp adds an extra to it, at the pinned versions.
.venv/lab .venv/federation .venv/dashboard .venv/test .venv/bench .venv/docs: .venv/%: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$*]"
	touch $@
