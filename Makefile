# A thin front for Meson: the commands people type.  `make demo` and `make test` install what is
# missing on a Debian or Ubuntu machine (tools/setup.sh), so they work on a fresh one.

BUILD := build
PYTHON ?= python3
# A Meson of our own, where the system's is too old (tools/setup.sh puts it there).
export PATH := $(CURDIR)/.cache/meson/bin:$(PATH)

SCALENE := $(BUILD)/src/cmd/scalene

.PHONY: all build demo test test-quick test-newer bench wheel format clean

all: build

build:
	@tools/setup.sh build
	@test -e $(BUILD)/build.ninja || meson setup $(BUILD) -Dtests=false >/dev/null
	@ninja -C $(BUILD) --quiet

# The example runs for about three seconds; then its profile is printed.
demo: build
	@$(SCALENE) run --python $(PYTHON) -o .cache/demo.json examples/demo.py
	@$(SCALENE) view --cli --reduced .cache/demo.json
	@echo; echo "The same in the browser: $(SCALENE) view .cache/demo.json"

test:
	@tools/setup.sh test
	@tools/run_tests.sh

# Without the sanitizers and the stress tests.
test-quick:
	@tools/setup.sh test
	@tools/run_tests.sh --quick

# The end-to-end tests on Pythons that no stable distribution ships yet (needs root or sudo).
test-newer: build
	@tools/setup.sh test
	@meson configure $(BUILD) -Dtests=true >/dev/null
	@ninja -C $(BUILD) --quiet
	@tools/newer.sh test

# What profiling costs, as ratios; never a test (see bench/README.md).  Without PYTHON=, by the Python of
# the tests, which has numpy.
bench: build
	@tools/setup.sh test
	@bench/overhead.py --build $(BUILD) \
		--python $(if $(filter file,$(origin PYTHON)),.cache/venv/bin/python,$(PYTHON))

wheel:
	@tools/setup.sh test
	@.cache/venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .

format:
	@find src tests -name '*.[ch]' | xargs clang-format -i

clean:
	rm -rf build build-asan build-tsan build-checked dist
