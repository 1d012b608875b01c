# SPDX-License-Identifier: GPL-2.0-only
#
# `make help` lists the targets. Results are in build/; BUILD=DIR, SANITIZE=address,undefined,
# CFLAGS, KERNEL_SRC, EXTENSIONS, PREFIX and DESTDIR may be given.
#
# Each folder is built by one rule, whatever files it has: lib/*/*.c become libguise,
# preload/ with it libguise-preload.so, holder/ and relay/ with it guise-holder, capture/*.c
# guise-capture, mptcp/*.c guise-check-mptcp, bench/*.c guise-bench,
# and each file of examples/, of bench/servers/, of bench/paths/ and of a folder of test/ a program.
# X_test.c beside
# X.c is a unit test: a program that is built with the sanitizers and run by `make check`.

BUILD ?= build
PREFIX ?= /usr/local
CFLAGS ?= -O2 -g
GO := make/go

# CROSS_COMPILE=aarch64-linux-gnu- builds for that processor; `make arm64` gives it.
ifneq ($(CROSS_COMPILE),)
CC := $(CROSS_COMPILE)gcc
AR := $(CROSS_COMPILE)ar
endif
go_for := $(if $(filter aarch64-%,$(CROSS_COMPILE)),GOARCH=arm64)

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# V=1 shows whole commands.
Q := $(if $(V),,@)
what = $(if $(V),,@printf '  %-6s %s\n' '$(1)' '$(2)')
comma := ,

# ---- what there is --------------------------------------------------------------------------

lib_sources := $(filter-out %_test.c,$(wildcard lib/*/*.c))
preload_sources := $(filter-out %_test.c,$(wildcard preload/*.c preload/*/*.c))
relay_sources := $(filter-out %_test.c,$(wildcard relay/*.c))
holder_sources := $(filter-out %_test.c,$(wildcard holder/*.c holder/*/*.c)) $(relay_sources)
capture_sources := $(filter-out %_test.c,$(wildcard capture/*.c))
mptcp_sources := $(filter-out %_test.c,$(wildcard mptcp/*.c))
bench_sources := $(wildcard bench/*.c)
lib_tests := $(wildcard lib/*/*_test.c)
preload_tests := $(wildcard preload/*_test.c preload/*/*_test.c)
holder_tests := $(wildcard holder/*_test.c holder/*/*_test.c)
relay_tests := $(wildcard relay/*_test.c)
capture_tests := $(wildcard capture/*_test.c)
mptcp_tests := $(wildcard mptcp/*_test.c)
fuzzers := $(wildcard fuzz/*_fuzz.c)
fuzz_sources := $(filter-out $(fuzzers),$(wildcard fuzz/*.c)) # what fuzzers share
go_sources := $(if $(wildcard cmd/guise/*.go),go.mod go.sum $(shell find cmd internal -type f))

programs := \
	$(if $(lib_sources),$(BUILD)/libguise.so $(BUILD)/libguise.a) \
	$(if $(preload_sources),$(BUILD)/libguise-preload.so) \
	$(if $(holder_sources),$(BUILD)/guise-holder) \
	$(if $(capture_sources),$(BUILD)/guise-capture) \
	$(if $(mptcp_sources),$(BUILD)/guise-check-mptcp) \
	$(if $(bench_sources),$(BUILD)/guise-bench) \
	$(if $(go_sources),$(BUILD)/guise) \
	$(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))
linux_6_12 := $(wildcard $(shell . ./versions.env && echo $$LINUX_TARBALL))
server_programs := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/servers/*.c bench/paths/*.c))
# (test/isa is compiled by its test, with the kernel's assembler.)
test_programs := $(patsubst %.c,$(BUILD)/%,$(filter-out test/isa/%,$(wildcard test/*/*.c))) $(BUILD)/test/redis-server \
	$(BUILD)/test/unpacked $(server_programs) $(if $(linux_6_12),$(BUILD)/test/mptcp_connect)
unit_tests := $(patsubst %.c,$(BUILD)/unit/%,$(lib_tests) $(preload_tests) $(holder_tests) $(relay_tests) $(capture_tests) \
	$(mptcp_tests))
fuzz_programs := $(patsubst %.c,$(BUILD)/unit/%,$(fuzzers))

# EXTENSIONS="NAME ..." asks for one more image, with these of extensions/.
empty :=
kernel_with = $(if $(strip $(1)),$(BUILD)/guise-kernel-$(subst $(empty) $(empty),-,$(sort $(1))))
extended_kernel := $(call kernel_with,$(EXTENSIONS))
unexport EXTENSIONS # build.sh would put them into each image
# The one that tests use has all that are shipped.
shipped_kernel := $(call kernel_with,lia lowrtt mote redundant template)
# What make install takes besides guise-kernel: no kernel that is for tests.
more_kernels = $(filter-out %.debug %.new $(addprefix $(BUILD)/guise-kernel-,planted net-debug 6.1), \
	$(wildcard $(BUILD)/guise-kernel-*))

.PHONY: all fetch fetch-arm64 fetch-bench fetch-check fetch-paths arm64 help check check-all soak bench bench-paths bench-servers demo fuzz
.PHONY: lint format install uninstall clean distclean FORCE

## all: everything, into build/ (the default)
all: $(BUILD)/guise-kernel $(extended_kernel) $(programs)

## help: this list
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST)) | awk -F': ' '{ printf "%-13s %s\n", $$1, $$2 }'

# ---- what comes from the network --------------------------------------------------------------

## fetch: Go modules, and a newer Go where it is needed; the build needs no network then
fetch:
	@$(GO) mod download

## fetch-arm64: the same, and Debian's libraries for arm64
fetch-arm64: fetch
	@. ./versions.env && make/arm64-root $$PACKAGES_ARM64 >/dev/null

## fetch-bench: as fetch, and the servers of bench-servers
fetch-bench: fetch $(BUILD)/test/unpacked

## fetch-paths: as fetch, and what draws the figure of bench-paths
fetch-paths: fetch
	@make/venv --plots python -c ''

## fetch-check: the same, and the tools and servers of the tests
fetch-check: fetch-arm64 fetch-paths $(BUILD)/test/unpacked
	@make/venv python -c ''
	@. ./versions.env && GO_AT_LEAST=$$GO_VERSION $(GO) run \
		honnef.co/go/tools/cmd/staticcheck@$$STATICCHECK_VERSION -version >/dev/null

# ---- C --------------------------------------------------------------------------------------

# What every C file of the host side is compiled with; clang-tidy is given it, too.
version := $(shell . ./versions.env && echo $$GUISE_VERSION)
c_dialect := -std=gnu11 -D_GNU_SOURCE= -DGUISE_VERSION=$(version) -Iinclude -Ilib -I.
c_warnings := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
c_flags := $(c_dialect) $(c_warnings) -fPIC -fvisibility=hidden -pthread
# What makes bugs harder to use. CET without its shadow stack (-fcf-protection=full): threads enter
# the image by a switch of stacks, of which that knows nothing.
has_flag = $(shell $(CC) -Werror $(1) -c -x c /dev/null -o /dev/null 2>/dev/null && echo $(1))
branches := $(or $(call has_flag,-fcf-protection=branch),$(call has_flag,-mbranch-protection=standard))
fortify := $(if $(SANITIZE),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
hardening = -fstack-protector-strong -fstack-clash-protection $(branches) $(fortify)
link_hardening := -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code
# Sanitizers confuse the compiler's view of what is initialized: its warnings count without them.
sanitize := $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer)
c_errors := $(if $(SANITIZE),-Wno-error)
test_sanitize := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

# Objects as shipped in $(BUILD)/obj, and those of the unit tests in $(BUILD)/unit/obj.
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
test_objects = $(patsubst %.c,$(BUILD)/unit/obj/%.o,$(1))

# It defines the functions that FORTIFY would put in place of others.
$(BUILD)/obj/preload/%: fortify :=
# Its assembler has no marks that jumps must hit. So no object says of itself that it has them all,
# as it must not: the image has none.
$(BUILD)/obj/lib/isa/% $(BUILD)/obj/preload/isa/%: branches :=
$(BUILD)/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call what,CC,$<)
	$(Q)$(CC) $(hardening) $(CFLAGS) $(c_flags) $(c_errors) $(sanitize) -MMD -MP -c -o $@ $<

$(BUILD)/unit/obj/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call what,CC test,$<)
	$(Q)$(CC) -O1 -g $(c_flags) -Wno-error $(test_sanitize) -MMD -MP -c -o $@ $<

# $(BUILD)/list/FOLDER names the sources of a folder; what is made of all of them depends on it,
# and so notices that one is gone.
$(BUILD)/list/%: FORCE
	@mkdir -p $(@D)
	@echo '$(wildcard $*/*.c $*/*/*.c)' | cmp -s - $@ || echo '$(wildcard $*/*.c $*/*/*.c)' > $@

define make_archive
$(call what,AR,$@)
@rm -f $@
$(Q)$(AR) rcs $@ $(filter %.o,$^)
endef

$(BUILD)/libguise.a: $(call objects,$(lib_sources)) $(BUILD)/list/lib
	$(make_archive)

# A library is put in place whole: running programs keep the one that they have mapped.
$(BUILD)/libguise.so: $(call objects,$(lib_sources)) $(BUILD)/list/lib
	$(call what,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(sanitize) -shared -pthread -Wl,-soname,libguise.so -Wl,-z,defs,-z,nodelete \
		$(link_hardening) -o $@.new $(filter %.o,$^)
	@mv $@.new $@

# The list of calls decides what the preload library exports.
$(BUILD)/preload.map: preload/preload.map.in preload/calls.h Makefile
	@mkdir -p $(@D)
	$(call what,GEN,$@)
	$(Q)$(CC) -E -P -x c -I. $< -o $@

preload_map := $(if $(wildcard preload/preload.map.in),$(BUILD)/preload.map)

$(BUILD)/libguise-preload.so: $(call objects,$(preload_sources)) $(BUILD)/list/preload \
		$(BUILD)/libguise.a $(preload_map)
	$(call what,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(sanitize) -shared -pthread -Wl,-soname,libguise-preload.so \
		-Wl,-z,defs $(link_hardening) -Wl,--exclude-libs,ALL \
		$(addprefix -Wl$(comma)--version-script=,$(preload_map)) -o $@.new $(filter %.o,$^) $(BUILD)/libguise.a -l:libcares.a
	@mv $@.new $@

$(BUILD)/guise-holder: $(call objects,$(holder_sources)) $(BUILD)/list/holder $(BUILD)/list/relay $(BUILD)/libguise.a
	$(call what,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(sanitize) -pie -pthread $(link_hardening) -o $@ $(filter %.o,$^) $(BUILD)/libguise.a

$(BUILD)/guise-capture: $(call objects,$(capture_sources)) $(BUILD)/list/capture $(BUILD)/libguise.a
	$(call what,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(sanitize) -pie -pthread $(link_hardening) -o $@ $(filter %.o,$^) $(BUILD)/libguise.a

# It knows nothing of libguise: it comes to a stack as any program does.
$(BUILD)/guise-check-mptcp: $(call objects,$(mptcp_sources)) $(BUILD)/list/mptcp
	$(call what,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(sanitize) -pie $(link_hardening) -o $@ $(filter %.o,$^)

$(BUILD)/guise-bench: $(call objects,$(bench_sources)) $(BUILD)/list/bench $(BUILD)/libguise.a
	$(call what,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(sanitize) -pie -pthread $(link_hardening) -o $@ $(filter %.o,$^) $(BUILD)/libguise.a

$(BUILD)/examples/%: examples/%.c $(BUILD)/libguise.so Makefile
	@mkdir -p $(@D)
	$(call what,CC,$<)
	$(Q)$(CC) $(CFLAGS) $(c_warnings) -std=gnu11 -Iinclude $(sanitize) -pthread -MMD -MP -o $@ $< \
		-L$(BUILD) -lguise '-Wl,-rpath,$$ORIGIN/..'

# Programs that tests run, on guise or on the host: only those that call libguise are linked to it.
# Wrong arguments are their trade; and so twins are built without sanitizers, which forbid them.
test_warnings := $(c_warnings) -Wno-array-bounds -Wno-nonnull -Wno-stringop-overflow -Wno-stringop-overread
$(BUILD)/test/build/%: sanitize :=
$(BUILD)/test/call/%: sanitize :=
$(BUILD)/test/host/%: sanitize :=
$(BUILD)/test/%: test/%.c $(BUILD)/libguise.so Makefile
	@mkdir -p $(@D)
	$(call what,CC,$<)
	$(Q)$(CC) $(CFLAGS) $(test_warnings) -std=gnu11 -D_GNU_SOURCE= -Iinclude $(sanitize) -pthread \
		-MMD -MP -o $@ $< -L$(BUILD) -Wl,--as-needed -lguise -lresolv \
		'-Wl,-rpath,$$ORIGIN/../..'

# Programs of the benchmarks with servers and with paths: they know nothing of libguise.
$(BUILD)/bench/%: bench/%.c Makefile
	@mkdir -p $(@D)
	$(call what,CC,$<)
	$(Q)$(CC) $(CFLAGS) $(c_warnings) -std=gnu11 -D_GNU_SOURCE= -pthread -MMD -MP -o $@ $<

# Debian's redis-tools holds the server as well: it is whatever it is called. The package
# redis-server would start one on this machine.
$(BUILD)/test/redis-server: FORCE
	@mkdir -p $(@D)
	@ln -sfn "$$(command -v redis-check-rdb || echo /usr/bin/redis-check-rdb)" $@

# A program of the kernel's own tests, taken from its source as it is.
$(BUILD)/test/mptcp_connect: $(linux_6_12)
	@mkdir -p $(@D)
	$(call what,CC,mptcp_connect of $<)
	$(Q)tar -x -O -f $< --wildcards '*/tools/testing/selftests/net/mptcp/mptcp_connect.c' > $@.c
	$(Q)$(CC) $(CFLAGS) -o $@ $@.c

# Other packages that would start a server are unpacked, and not installed.
$(BUILD)/test/unpacked: FORCE
	@mkdir -p $(@D)
	@! command -v apt-get >/dev/null || make/unpack $@ $(shell . ./versions.env && echo $$PACKAGES_UNPACKED)

# Unit tests take from these archives what they call; the rest of a part stays out.
$(BUILD)/unit/libguise.a: $(call test_objects,$(lib_sources)) $(BUILD)/list/lib
	$(make_archive)

$(BUILD)/unit/preload.a: $(call test_objects,$(preload_sources)) $(BUILD)/list/preload
	$(make_archive)

$(BUILD)/unit/holder.a: $(call test_objects,$(holder_sources)) $(BUILD)/list/holder $(BUILD)/list/relay
	$(make_archive)

$(BUILD)/unit/relay.a: $(call test_objects,$(relay_sources)) $(BUILD)/list/relay
	$(make_archive)

$(BUILD)/unit/capture.a: $(call test_objects,$(capture_sources)) $(BUILD)/list/capture
	$(make_archive)

$(BUILD)/unit/mptcp.a: $(call test_objects,$(mptcp_sources)) $(BUILD)/list/mptcp
	$(make_archive)

define link_test
@mkdir -p $(@D)
$(call what,LD,$@)
$(Q)$(CC) $(test_sanitize) -pthread -o $@ $(filter %.o %.a,$^)
endef

$(BUILD)/unit/lib/%_test: $(BUILD)/unit/obj/lib/%_test.o $(BUILD)/unit/libguise.a
	$(link_test)

$(BUILD)/unit/preload/%_test: $(BUILD)/unit/obj/preload/%_test.o $(BUILD)/unit/preload.a $(BUILD)/unit/libguise.a
	$(link_test)

$(BUILD)/unit/holder/%_test: $(BUILD)/unit/obj/holder/%_test.o $(BUILD)/unit/holder.a $(BUILD)/unit/libguise.a
	$(link_test)

# Nothing of the holder is linked: the engine does without it.
$(BUILD)/unit/relay/%_test: $(BUILD)/unit/obj/relay/%_test.o $(BUILD)/unit/relay.a $(BUILD)/unit/libguise.a
	$(link_test)

$(BUILD)/unit/capture/%_test: $(BUILD)/unit/obj/capture/%_test.o $(BUILD)/unit/capture.a $(BUILD)/unit/libguise.a
	$(link_test)

$(BUILD)/unit/mptcp/%_test: $(BUILD)/unit/obj/mptcp/%_test.o $(BUILD)/unit/mptcp.a
	$(link_test)

$(BUILD)/unit/fuzz.a: $(call test_objects,$(fuzz_sources)) $(BUILD)/list/fuzz
	$(make_archive)

$(BUILD)/unit/fuzz/%_fuzz: $(BUILD)/unit/obj/fuzz/%_fuzz.o $(BUILD)/unit/fuzz.a $(BUILD)/unit/holder.a \
		$(BUILD)/unit/mptcp.a $(BUILD)/unit/libguise.a
	$(link_test)

.SECONDARY:

-include $(patsubst %.o,%.d,$(call objects,$(lib_sources) $(preload_sources) $(holder_sources) $(capture_sources) \
	$(mptcp_sources) $(bench_sources)))
-include $(patsubst %.o,%.d,$(call test_objects,$(lib_sources) $(preload_sources) $(holder_sources) \
	$(mptcp_sources) $(fuzz_sources)))
-include $(patsubst %.c,$(BUILD)/unit/obj/%.d,$(lib_tests) $(preload_tests) $(holder_tests) $(relay_tests) $(fuzzers))
-include $(wildcard $(BUILD)/examples/*.d $(BUILD)/bench/*/*.d $(BUILD)/test/*/*.d)

# ---- the kernel, and Go -----------------------------------------------------------------------

# The script finds out itself, in a moment, whether there is anything to do.
$(BUILD)/guise-kernel: FORCE
	@linux/build.sh $(BUILD)

# The kernel with a bug in it that fuzzers must find; all else is taken from the kernel's build.
$(BUILD)/guise-kernel-planted: $(BUILD)/guise-kernel FORCE
	@mkdir -p $(BUILD)/linux-planted
	@[ -d $(BUILD)/linux-planted/linux ] || [ ! -d $(BUILD)/linux ] || \
		flock $(BUILD)/.kernel.lock cp -a $(BUILD)/linux $(BUILD)/linux-planted/
	@KERNEL_CONFIG='net planted' linux/build.sh $(BUILD)/linux-planted
	@ln -f $(BUILD)/linux-planted/guise-kernel $@
	@ln -f $(BUILD)/linux-planted/guise-kernel.debug $@.debug

# Linux 6.1, for tests.
$(BUILD)/guise-kernel-6.1: FORCE
	@mkdir -p $(BUILD)/linux-6.1
	@KERNEL_SRC=$(linux_6_1) linux/build.sh $(BUILD)/linux-6.1
	@ln -f $(BUILD)/linux-6.1/guise-kernel $@
	@ln -f $(BUILD)/linux-6.1/guise-kernel.debug $@.debug

# The kernel with its own checks, for tests.
$(BUILD)/guise-kernel-net-debug: FORCE
	@mkdir -p $(BUILD)/linux-net-debug
	@KERNEL_CONFIG='net debug' linux/build.sh $(BUILD)/linux-net-debug
	@ln -f $(BUILD)/linux-net-debug/guise-kernel $@
	@ln -f $(BUILD)/linux-net-debug/guise-kernel.debug $@.debug

# A kernel with extensions (docs/extensions.md), beside the others: guise-kernel-NAME-NAME. All else
# is taken from the kernel's build. The name of the file is for people: who needs an extension looks
# for an image that says that it has it.
$(BUILD)/guise-kernel-%: $(BUILD)/guise-kernel FORCE
	@mkdir -p $(BUILD)/linux-$*
	@[ -d $(BUILD)/linux-$*/linux ] || [ ! -d $(BUILD)/linux ] || \
		flock $(BUILD)/.kernel.lock cp -a $(BUILD)/linux $(BUILD)/linux-$*/
	@EXTENSIONS='$(subst -, ,$*)' linux/build.sh $(BUILD)/linux-$*
	@ln -f $(BUILD)/linux-$*/guise-kernel $@
	@ln -f $(BUILD)/linux-$*/guise-kernel.debug $@.debug

# Debian 13 has no source of 6.1.
linux_6_1 := $(shell . ./versions.env && echo $$LINUX_TARBALL_6_1)
other_kernels := $(BUILD)/guise-kernel-net-debug $(if $(wildcard $(linux_6_1)),$(BUILD)/guise-kernel-6.1)

# In a program whose preload library has sanitizers, their runtime is loaded next to it.
go_flags := $(if $(filter address%,$(SANITIZE)),-ldflags \
	'-X guise/internal/holder.sanitizer=$(shell realpath "$$($(CC) -print-file-name=libasan.so)")')

# go leaves an unchanged program's time alone.
$(BUILD)/guise: $(go_sources)
	$(call what,GO,$@)
	$(Q)CGO_ENABLED=0 $(go_for) $(GO) build -trimpath -buildvcs=false $(go_flags) -o $@ ./cmd/guise
	@touch $@

# ---- arm64 --------------------------------------------------------------------------------------

# Debian's libraries for arm64 are not installed here; what is linked with them is found below
# this folder, and their headers are this machine's own where they are the same.
arm64_programs := $(patsubst %.c,$(BUILD)/arm64/%,test/port/fault.c test/region/stacks.c \
	test/fault/killed.c test/multipath/cables.c $(filter-out test/preload/raw.c,$(wildcard test/preload/*.c)))

## arm64: everything for arm64, cross-built, into build/arm64
arm64:
	@root=$$(. ./versions.env && make/arm64-root $$PACKAGES_ARM64) && \
		$(MAKE) --no-print-directory BUILD=$(BUILD)/arm64 CROSS_COMPILE=aarch64-linux-gnu- SANITIZE= \
		EXTENSIONS="$(EXTENSIONS)" \
		CFLAGS="$(CFLAGS) -idirafter $$root/usr/include" \
		LDFLAGS="$(LDFLAGS) -L$$root/usr/lib/aarch64-linux-gnu" all $(arm64_programs)

# ---- tests ------------------------------------------------------------------------------------

export GUISE_BUILD := $(abspath $(BUILD))
CHECK := C_DIALECT='$(c_dialect)' UNIT_TESTS='$(unit_tests)' make/venv python make/check.py

## check: linters, unit tests, tests of a running guise; under 40 minutes
check: all arm64 $(unit_tests) $(test_programs) $(fuzz_programs) $(BUILD)/guise-kernel-planted \
		$(shipped_kernel)
	@$(CHECK) lint unit go pytest

## check-all: as check, with the slow tests, such as fresh Debian systems
check-all: all arm64 $(unit_tests) $(test_programs) $(fuzz_programs) $(BUILD)/guise-kernel-planted \
		$(shipped_kernel) $(other_kernels)
	@$(CHECK) lint unit go pytest-all

## soak: the tests that run for hours
soak: all $(test_programs) $(fuzz_programs) $(shipped_kernel)
	@$(CHECK) soak

## lint: clang-format, clang-tidy, gofmt, vet, staticcheck, ruff, mypy, shellcheck
lint:
	@$(CHECK) lint

## format: rewrites C, Go and Python as lint wants them
format:
	@$(CHECK) format

## fuzz: each fuzzer for FUZZ_SECONDS (default 60)
fuzz: all $(fuzz_programs)
	@set -e; for fuzzer in $(fuzz_programs); do \
		FUZZ_SECONDS=$${FUZZ_SECONDS:-60} GUISE_KERNEL=$(BUILD)/guise-kernel $$fuzzer; done

## bench: this stack against this host's, side by side
bench: all
	$(BUILD)/guise bench

## bench-servers: servers and their clients on one stack, and on this host; SERVERS='jvm node-*'
bench-servers: all $(server_programs) $(BUILD)/test/unpacked
	bench/servers/run $(SERVERS)

## bench-paths: one path and two, on this stack and on this host's; PATHS='--trials 2 --seconds 1'
bench-paths: all $(BUILD)/bench/paths/stream
	bench/paths/run $(PATHS)

## demo: uploads over congestion controls that this host may not have
demo: all
	demo/run

# ---- housekeeping -----------------------------------------------------------------------------

# One that runs here.
guise_here = $(if $(CROSS_COMPILE),$(GO) run ./cmd/guise,$(BUILD)/guise)

# What is installed. The command looks for what it starts in ../lib/guise.
to := $(DESTDIR)$(PREFIX)
own_folders := $(addprefix $(to)/,lib/guise include/guise share/guise)
completion_bash := $(to)/share/bash-completion/completions/guise
completion_zsh := $(to)/share/zsh/site-functions/_guise
completion_fish := $(to)/share/fish/vendor_completions.d/guise.fish
manuals := $(to)/share/man/man1/guise.1 $(to)/share/man/man5/guise-config.5

## install: into DESTDIR and PREFIX (default /usr/local)
install: all
	install -d $(to)/bin $(own_folders) $(dir $(manuals))
	install -m 755 $(BUILD)/guise $(to)/bin/
	install -m 755 $(addprefix $(BUILD)/,guise-holder guise-capture guise-check-mptcp guise-bench) $(to)/lib/guise/
	install -m 644 $(addprefix $(BUILD)/,guise-kernel libguise.so libguise.a libguise-preload.so) \
		$(more_kernels) $(to)/lib/guise/
	install -m 644 include/guise/*.h $(to)/include/guise/
	install -m 644 docs/guise.schema.json $(to)/share/guise/
	for manual in $(manuals); do install -m 644 docs/$${manual##*/} $$manual; done
	$(guise_here) completion bash | install -D -m 644 /dev/stdin $(completion_bash)
	$(guise_here) completion zsh | install -D -m 644 /dev/stdin $(completion_zsh)
	$(guise_here) completion fish | install -D -m 644 /dev/stdin $(completion_fish)

## uninstall: removes what install put into DESTDIR and PREFIX
uninstall:
	rm -rf $(own_folders)
	rm -f $(to)/bin/guise $(manuals) $(completion_bash) $(completion_zsh) $(completion_fish)

## clean: removes build/, except what the kernel was built from and into
clean:
	@[ ! -d $(BUILD) ] || find $(BUILD) -mindepth 1 -maxdepth 1 ! -name 'linux*' \
		! -name 'guise-kernel*' ! -name '.kernel*' -exec rm -rf {} +

## distclean: removes build/; the cache in ~/.cache/guise stays
distclean:
	rm -rf $(BUILD)
