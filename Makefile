# The project's tasks. Missing tools are installed from Debian.

# No built-in rules: they would rebuild the kept BPF objects with the host compiler.
MAKEFLAGS += --no-builtin-rules

HOST    := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
# make build ARCH=arm64 cross-builds dist/latlab-arm64, as guests for arm64 need it.
ARCH    := native
GNU     := $(patsubst native,,$(patsubst amd64,x86_64-linux-gnu,$(patsubst arm64,aarch64-linux-gnu,$(ARCH))))
TARGET  := $(or $(GNU:-linux-gnu=-unknown-linux-gnu),$(HOST))
$(if $(filter native amd64 arm64,$(ARCH)),,$(error ARCH=$(ARCH): latlab is built for amd64 and arm64))
CROSS   := $(if $(filter-out $(HOST),$(TARGET)),$(ARCH))
LATLAB  := dist/latlab$(CROSS:%=-%)
# The program of guests, which latlab carries; guests for another architecture find it beside latlab.
GUEST   := dist/latlab-guest$(CROSS:%=-%)
# No path of this user is written into the programs: crates/latlab-lab/build.rs has the same flags.
REMAP   := --config 'target.$(TARGET).rustflags=["--remap-path-prefix=$(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo"]'
# The library for users' loops, without its extension.
PERIOD  := dist/liblatlab-period$(CROSS:%=-%)
CHARTS  := target/charts/charts.js.gz
# Folders of make install; DESTDIR goes before each.
PREFIX  ?= /usr/local
# The program that writes manual pages and completions: for another architecture, this machine's.
SELF    := $(if $(CROSS),dist/latlab,$(LATLAB))
# Packages of a release: their folder, version and Debian's name of the architecture.
PACKAGES := dist/packages
COMMA    := ,
VERSION  := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
DEBIAN   := $(or $(CROSS),$(shell dpkg --print-architecture 2>/dev/null))
# The variable by which cargo links programs.
LINKER  := CARGO_TARGET_$(shell echo $(TARGET) | tr a-z- A-Z_)_LINKER
# The program contains the sources of the test driver and of the plugin.
SOURCES := $(shell git ls-files build crates kmod plugin .cargo 2>/dev/null || find build crates kmod plugin .cargo -type f) Cargo.toml Cargo.lock
CARGO_OUT := $(or $(CARGO_TARGET_DIR),target)/$(TARGET)

BPF     := $(addprefix crates/latlab-bpf/src/,check.bpf.o recorder.bpf.o wakers.bpf.o)
# Libraries and tools for linking the program.
LIBRARIES := cc=gcc libc.a=libc6-dev libelf.a=libelf-dev libz.a=zlib1g-dev pkg-config=pkg-config make=make
# The same for another architecture.
FOREIGN := $(GNU)-gcc=gcc-$(subst _,-,$(GNU)) /usr/$(GNU)/lib/libc.a=libc6-dev-$(ARCH)-cross \
	/usr/lib/$(GNU)/libelf.a=libelf-dev:$(ARCH) /usr/lib/$(GNU)/libz.a=zlib1g-dev:$(ARCH)

# Tools for building kernels.
KERNEL_TOOLS := cc=gcc flex=flex bison=bison bc=bc perl=perl xz=xz-utils pahole=dwarves libelf.a=libelf-dev

# Tools of the unit tests, then of all tests.
UNIT_TEST_TOOLS := cpio=cpio xz=xz-utils zstd=zstd
TEST_TOOLS := $(UNIT_TEST_TOOLS) /usr/lib/x86_64-linux-gnu/libelf.so.1=libelf1 chromium=chromium /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf=fonts-dejavu-core unshare=util-linux setpriv=util-linux \
	setcap=libcap2-bin ssh=openssh-client /usr/sbin/sshd=openssh-server \
	qemu-system-x86_64=qemu-system-x86 mke2fs=e2fsprogs /usr/sbin/bpftool=bpftool python3=python3 \
	/usr/share/doc/python3-venv=python3-venv /usr/sbin/slurmctld=slurm-wlm sbatch=slurm-client \
	/usr/sbin/munged=munge cyclictest=rt-tests trace-cmd=trace-cmd stress-ng=stress-ng clang=clang llvm-strip=llvm \
	/usr/include/bpf/bpf_helpers.h=libbpf-dev zsh=zsh fish=fish groff=groff-base man=man-db script=bsdutils systemd-analyze=systemd strace=strace

.PHONY: build library install packages packages-test demo check test test-rest test-all boards truth torture checked fuzz deny kernels studies lint bench bpf book clean

# A target that is half written is not newer than its sources.
.DELETE_ON_ERROR:

build: $(LATLAB)

$(LATLAB): $(SOURCES) $(CHARTS)
	tools/need cargo= $(LIBRARIES) $(if $(CROSS),$(FOREIGN))
	$(if $(CROSS),! command -v rustup >/dev/null || rustup --quiet target add $(TARGET))
	$(if $(CROSS),$(LINKER)=$(GNU)-gcc) cargo build --release --locked --package latlab-guest --target $(TARGET) $(REMAP)
	mkdir -p dist && cp -f $(CARGO_OUT)/release/latlab-guest $(GUEST)
	$(if $(CROSS),$(LINKER)=$(GNU)-gcc) LATLAB_GUEST=$(abspath $(GUEST)) \
		cargo build --release --locked --package latlab --target $(TARGET) $(REMAP)
	cp -f $(CARGO_OUT)/release/latlab $@

library: $(PERIOD).a $(PERIOD).so

# Its functions for C, without std.
$(PERIOD).a: $(SOURCES)
	tools/need cargo= $(LIBRARIES) $(if $(CROSS),$(FOREIGN))
	$(if $(CROSS),! command -v rustup >/dev/null || rustup --quiet target add $(TARGET))
	cargo rustc --profile library --locked --package latlab-period --features c --crate-type staticlib --target $(TARGET)
	mkdir -p $(@D)
	$(GNU:%=%-)strip --strip-debug -o $@ $(CARGO_OUT)/library/liblatlab_period.a

# Linked without the C library, so that it takes its functions, whichever and of whatever version, from the
# program that loads it: the wheel is for glibc and musl.
$(PERIOD).so: $(PERIOD).a
	$(or $(GNU:%=%-gcc),$(CC)) -shared -nostdlib -o $@ -Wl,-soname,liblatlab-period.so.0 -Wl,--gc-sections -Wl,-z,now \
		-Wl,--version-script=crates/latlab-period/exported.map \
		$(addprefix -Wl$(COMMA)--require-defined=latlab_,$(addprefix period_,start wait summary end) mark_begin mark_end prioritize) $<

# Installs the program, the library for loops, manual pages, completions for three shells, and the unit of the daemon.
install: INTO = $(DESTDIR)$(PREFIX)
install: $(LATLAB) $(PERIOD).a $(PERIOD).so
	$(if $(CROSS),$(MAKE) ARCH=native build)
	install -D $(LATLAB) $(INTO)/bin/latlab
	install -D --mode=644 --target-directory=$(INTO)/include crates/latlab-period/include/latlab-period.h crates/latlab-period/include/latlab-mark.h
	install -D --mode=644 $(PERIOD).a $(INTO)/lib/liblatlab-period.a
	install -D --mode=644 $(PERIOD).so $(INTO)/lib/liblatlab-period.so.0
	ln -sf liblatlab-period.so.0 $(INTO)/lib/liblatlab-period.so
	mkdir -p $(INTO)/lib/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' crates/latlab-period/latlab-period.pc > $(INTO)/lib/pkgconfig/latlab-period.pc
	mkdir -p $(addprefix $(INTO)/share/,bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	$(SELF) generate man --out $(INTO)/share/man/man1
	$(SELF) generate bash > $(INTO)/share/bash-completion/completions/latlab
	$(SELF) generate zsh > $(INTO)/share/zsh/site-functions/_latlab
	$(SELF) generate fish > $(INTO)/share/fish/vendor_completions.d/latlab.fish
	mkdir -p $(INTO)/lib/systemd/system
	for unit in latlab-adapt latlab-explain; do \
		sed 's|/usr/local/bin/|$(PREFIX)/bin/|' examples/$$unit.service > $(INTO)/lib/systemd/system/$$unit.service || exit 1; \
	done

# What a release consists of, in dist/packages: a Debian package, an archive, an OCI image and a Python
# wheel; ARCH=arm64 makes those for arm64. Their times are that of the last commit, so that the same sources give the same bytes.
packages: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
packages: $(LATLAB) library
	tools/need dpkg-deb=dpkg python3=python3 /usr/share/doc/python3-venv=python3-venv
	$(if $(CROSS),$(MAKE) ARCH=native build)
	mkdir -p $(PACKAGES) && rm -f $(PACKAGES)/SHA256SUMS
	for kind in deb tar image wheel; do \
		PERIOD=$(PERIOD) packages/$$kind $(LATLAB) $(DEBIAN) $(VERSION) $(PACKAGES) || exit 1; \
	done
	cd $(PACKAGES) && sha256sum latlab* > SHA256SUMS && cat SHA256SUMS

# Installs each package on a clean Debian 12 and 13 and measures there; packages for another architecture
# in guests, which takes longer. Needs root and a network.
packages-test: packages
	tools/need debootstrap=debootstrap skopeo=skopeo umoci=umoci $(if $(CROSS),qemu-system-aarch64=qemu-system-arm)
	LATLAB=$(abspath $(SELF)) packages/test $(PACKAGES) $(DEBIAN)

# The drawing code of reports: the project's own code and the parts of ECharts that it needs.
$(CHARTS): charts/charts.js charts/columns.js charts/layout.js charts/marks.js charts/package.json charts/package-lock.json
	tools/need cargo= cc=gcc libc.a=libc6-dev node=nodejs npm=npm
	cd charts && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

# A tour: measures this machine idle and under load, explains late wake-ups where that is possible,
# studies three kernels in the laboratory, scans a call on two kernels and here, and writes reports.
demo: $(LATLAB)
	tools/need qemu-system-x86_64=qemu-system-x86
	@mkdir -p demo
	@$(LATLAB) doctor || true
	@set -e; policy=$$($(LATLAB) exec --fifo 1 -- echo fifo || echo other); \
	$(LATLAB) run --policy $$policy --for 20s --out demo/idle.json; \
	$(LATLAB) run --policy $$policy --for 20s --load hackbench --load disk --load fork --out demo/loaded.json
	@$(LATLAB) compare demo/idle.json demo/loaded.json
	@$(LATLAB) report demo/idle.json demo/loaded.json -o demo/report.html
	@rm -f demo/why.json
	@set -e; policy=$$($(LATLAB) exec --fifo 1 -- echo fifo || echo other); \
	$(LATLAB) explain cyclic --policy $$policy --for 5s --load hackbench --out demo/why.json || test $$? = 3
	@if test -e demo/why.json; then $(LATLAB) report demo/why.json -o demo/why.html --perfetto demo/why.trace.json; \
	else echo "Late wake-ups cannot be explained on this machine; the message above says why. The demo continues."; fi
	@$(LATLAB) study quick --out demo/quick
	@$(LATLAB) scan populate:4MiB --points 40 --resolution 2us --on lab:utime --on lab:preemptible-hr --out demo/scans
	@! $(LATLAB) exec --fifo 1 -- true || $(LATLAB) scan munmap:4MiB --for 10s --out demo/scans/here.json
	@$(LATLAB) report demo/scans/lab-*.json -o demo/scans.html
	@! test -e demo/scans/here.json || $(LATLAB) report demo/scans/here.json -o demo/scan-here.html
	@echo "The reports are demo/*.html and demo/quick/report.html: open them in a browser."

# Format, clippy, unit tests and the rules of the tree: seconds once it is built, without root and network where the
# tools are installed. The tests hear signals that a shell ignores in the background, and those of nohup. Here and
# below, cargo tests the whole workspace: for one package alone it would compile crates again, with fewer features.
check: lint
	tools/need $(UNIT_TEST_TOOLS)
	env --default-signal=HUP,INT cargo test --quiet --locked --workspace --lib --bins --test tidy

# What tests need. The daemon needs tracepoints, which are not mounted on every machine.
define PREPARE
tools/need $(LIBRARIES) $(TEST_TOOLS)
-test $$(id -u) != 0 || test -e /sys/kernel/tracing/events || mount -t tracefs tracefs /sys/kernel/tracing
endef

# All tests but repetitions, long series, and faults at every call, which .config/tiers lists. At the end it says how
# long each group took, which tests could not run on this machine, and how to repeat those that failed; in
# continuous integration (CI=true) some of the tests that could not run are failures. TEST=NAME runs the tests
# of this name, or of the module of this name, whatever their tier.
test: $(if $(TEST),$(CHARTS),lint)
	$(PREPARE)
	cargo test --quiet --locked --workspace --doc
	tools/tests $(if $(TEST),one '$(TEST)',test)

# The tests that make test leaves out, and what changes without the project: known defects of crates. PART=1/3
# runs a third of the tests.
test-rest: $(CHARTS)
	$(PREPARE)
	tools/deny
	tools/tests rest $(PART:%=--partition slice:%)

# All tests.
test-all: lint
	$(PREPARE)
	tools/deny
	cargo test --quiet --locked --workspace --doc
	tools/tests all

# Tests guests for arm64, with the program cross-built for them.
boards: $(CHARTS)
	$(MAKE) build ARCH=arm64
	tools/need $(LIBRARIES) $(TEST_TOOLS) qemu-system-aarch64=qemu-system-arm
	LATLAB_ARM64=$(abspath dist/latlab-arm64) cargo test --locked --workspace --test cli arm64::

# Judges explain and scan by random scenes in guests whose truth is known, and explains nine loads on all kernels.
truth: $(CHARTS)
	tools/need $(LIBRARIES) $(TEST_TOOLS)
	LATLAB_SCENES=$${LATLAB_SCENES:-250} cargo test --locked --workspace --test cli -- --nocapture scenes:: check::overruns explain::kernels

# Makes each system call of commands that change this machine or write files fail once, kills them
# before each write, and kills sixteen commands 500 times at random moments. Prints how many faults and
# kills there were. Takes hours; with LATLAB_FAULTS=10 every tenth call fails. LATLAB_UNDER_TEST=PATH
# tests another program.
torture: $(CHARTS)
	tools/need $(LIBRARIES) $(TEST_TOOLS) $(KERNEL_TOOLS)
	LATLAB_FAULTS=$${LATLAB_FAULTS:-1} LATLAB_KILLS=$${LATLAB_KILLS:-500} \
		cargo test --locked --workspace --test cli faults:: -- --test-threads 1

# Runs the pure crates in Miri, and latlab-sys with AddressSanitizer and ThreadSanitizer.
checked:
	tools/need cargo= $(LIBRARIES)
	tools/checked

torture: checked

# Fuzzes every parser, guided by coverage, for FUZZ_FOR seconds in all.
fuzz:
	tools/need cargo= $(LIBRARIES) c++=g++
	tools/fuzz $(FUZZ_FOR)

# Checks licences, sources, duplicates and known defects of the crates.
deny:
	tools/deny

# The laboratory's own kernels, built from Debian's sources into the user's cache.
KERNELS = monolithic preemptible lab-full
kernels: $(LATLAB)
	tools/need $(KERNEL_TOOLS)
	for kernel in $(KERNELS); do $(LATLAB) kernel build $$kernel || exit 1; done

# Repeats the studies whose tables are in docs/results/. Takes four hours without cached results. The same
# program on the same kernels writes the same bytes.
studies: KERNELS = monolithic preemptible
studies: kernels
	$(MAKE) build ARCH=arm64
	tools/need qemu-system-aarch64=qemu-system-arm
	for table in docs/results/*/table.md; do \
		folder=$${table%/table.md}; $(LATLAB) study $${folder##*/} --out $$folder >/dev/null || exit 1; \
	done

lint: $(CHARTS)
	tools/need cargo= $(LIBRARIES)
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

# Benchmarks latlab alone and against similar tools; docs/results/ holds the figures.
bench: $(LATLAB)
	tools/need cyclictest=rt-tests tbench=dbench
	cargo bench --locked --package latlab-core --bench record
	cargo bench --locked --package latlab-bpf --bench cost
	cargo bench --locked --package latlab-bpf --bench wakers
	cargo bench --locked --package latlab --bench report
	cargo bench --locked --package latlab --bench cyclictest
	cargo bench --locked --package latlab --bench peers
	crates/latlab/benches/laboratory.sh

# Compiles the BPF programs of check, the recorder and the wakers. The objects are kept beside the sources, so that building the program needs no clang.
bpf:
	tools/need clang=clang llvm-strip=llvm /usr/include/bpf/bpf_helpers.h=libbpf-dev
	for object in $(BPF); do tools/bpf $$object || exit 1; done

# Builds the documentation with a search in book/; its reference page is made of the descriptions of the parts.
book: $(LATLAB)
	tools/need mkdocs=mkdocs
	$(LATLAB) generate reference.md > docs/reference.md
	mkdocs build --quiet --strict

clean:
	cargo clean
	rm -rf dist demo book charts/node_modules
