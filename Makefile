# Everything that is done with this project, by name. What is missing is installed from Debian.

TARGET  := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: //p')
LATLAB  := dist/latlab
CHARTS  := target/charts/charts.js.gz
NOT_RUN := target/not-run
SOURCES := $(shell git ls-files crates 2>/dev/null || find crates -type f) Cargo.toml Cargo.lock

BPF     := $(addprefix crates/latlab-bpf/src/,recorder.bpf.o slices.bpf.o wakers.bpf.o)
# What the program is linked with.
LIBRARIES := cc=gcc libc.a=libc6-dev libelf.a=libelf-dev libz.a=zlib1g-dev pkg-config=pkg-config make=make

.PHONY: build demo test kernels studies lint bench bpf reference book clean

build: $(LATLAB)

$(LATLAB): $(SOURCES) $(CHARTS)
	tools/need cargo= $(LIBRARIES)
	cargo build --release --locked --package latlab
	mkdir -p dist && cp target/$(TARGET)/release/latlab $@

# The drawing code of reports: our own lines and the parts of ECharts that they need.
$(CHARTS): charts/charts.js charts/columns.js charts/marks.js charts/package.json charts/package-lock.json
	tools/need cargo= cc=gcc libc.a=libc6-dev node=nodejs npm=npm /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf=fonts-dejavu-core
	cd charts && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

# The main job: this machine idle and under load, side by side; why it is late, where it can be told;
# then a study of three real kernels in the laboratory; then a call, scanned on two kernels and here.
# Reports to look at.
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
	else echo "Why it is late can't be told here: latlab has said above what that takes. The demo goes on."; fi
	@$(LATLAB) study quick --out demo/quick
	@$(LATLAB) scan populate:4MiB --points 40 --resolution 2us --on lab:utime --on lab:preemptible-hr --out demo/scans
	@! $(LATLAB) exec --fifo 1 -- true || $(LATLAB) scan munmap:4MiB --for 10s --out demo/scans/here.json
	@$(LATLAB) report demo/scans/lab-*.json -o demo/scans.html
	@! test -e demo/scans/here.json || $(LATLAB) report demo/scans/here.json -o demo/scan-here.html
	@echo "The pictures are in demo/*.html and demo/quick/report.html: open them in a browser."

# Tests that could not run on this machine are listed at the end; in continuous integration (CI=true) some
# of them are failures. The daemon needs tracepoints, which are not mounted on every machine. Tests send
# signals that are ignored in the background of a shell and under nohup.
test: $(CHARTS) lint
	tools/need $(LIBRARIES) /usr/lib/x86_64-linux-gnu/libelf.so.1=libelf1 chromium=chromium unshare=util-linux setpriv=util-linux setcap=libcap2-bin cpio=cpio xz=xz-utils zstd=zstd ssh=openssh-client /usr/sbin/sshd=openssh-server qemu-system-x86_64=qemu-system-x86 mke2fs=e2fsprogs /usr/sbin/bpftool=bpftool python3=python3 /usr/share/doc/python3-venv=python3-venv /usr/sbin/slurmctld=slurm-wlm sbatch=slurm-client /usr/sbin/munged=munge cyclictest=rt-tests clang=clang llvm-strip=llvm /usr/include/bpf/bpf_helpers.h=libbpf-dev zsh=zsh fish=fish groff=groff-base systemd-analyze=systemd
	-test $$(id -u) != 0 || test -e /sys/kernel/tracing/events || mount -t tracefs tracefs /sys/kernel/tracing
	mkdir -p target && rm -f $(NOT_RUN)
	env --default-signal=HUP,INT LATLAB_NOT_RUN=$(abspath $(NOT_RUN)) cargo test --locked --workspace --no-fail-fast; \
	status=$$?; tools/not-run $(NOT_RUN) || test $$status != 0 || status=1; exit $$status

# The laboratory's own kernels, built from Debian's sources into the user's cache.
kernels: $(LATLAB)
	tools/need cc=gcc flex=flex bison=bison bc=bc perl=perl xz=xz-utils pahole=dwarves libelf.a=libelf-dev
	$(LATLAB) kernel build monolithic
	$(LATLAB) kernel build preemptible
	$(LATLAB) kernel build lab-full

# The studies whose tables are kept in docs/results/, measured again: hours where nothing is known yet.
# With the same program on the same kernels git sees no change.
studies: kernels
	for table in docs/results/*/table.md; do \
		folder=$${table%/table.md}; $(LATLAB) study $${folder##*/} --out $$folder >/dev/null || exit 1; \
	done

lint: $(CHARTS)
	tools/need cargo= $(LIBRARIES)
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets -- -D warnings

# Compares latlab with its peers and with its own promises; docs/results/ keeps what came out.
bench: $(LATLAB)
	tools/need cyclictest=rt-tests tbench=dbench
	cargo bench --locked --package latlab-core --bench record
	cargo bench --locked --package latlab-bpf --bench cost
	cargo bench --locked --package latlab-bpf --bench wakers
	cargo bench --locked --package latlab --bench report
	cargo bench --locked --package latlab --bench cyclictest
	cargo bench --locked --package latlab --bench peers
	crates/latlab/benches/laboratory.sh

# The kernel's side of the recorder, the slices and the wakers. What clang makes of it is kept beside
# it, so that nobody needs clang to build the program.
bpf:
	tools/need clang=clang llvm-strip=llvm /usr/include/bpf/bpf_helpers.h=libbpf-dev
	for object in $(BPF); do tools/bpf $$object || exit 1; done

# What the parts say of themselves, as a page of the documentation.
reference: $(CHARTS)
	cargo run --quiet --locked --package latlab -- generate reference.md > docs/reference.new
	mv docs/reference.new docs/reference.md

# The documentation as pages with a search, in book/.
book:
	tools/need mkdocs=mkdocs
	mkdocs build --quiet --strict

clean:
	cargo clean
	rm -rf dist demo book charts/node_modules
