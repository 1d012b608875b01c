#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds the kernel image: linux/build.sh [BUILD]
#
# Makes BUILD/guise-kernel (stripped) and BUILD/guise-kernel.debug from Debian's
# kernel source and this folder; BUILD is build/ unless given. Environment:
#	KERNEL_SRC	another source: an unpacked tree, or a tarball of one
#	KERNEL_CONFIG	which of linux/configs, one or several in this order; default: net
#	EXTENSIONS	which of extensions/ are built into it (docs/extensions.md); default: none
#	JOBS		how many compilers run at once; default: one for each processor
#	CROSS_COMPILE	prefix of the names of gcc, ld and strip, for another processor:
#			aarch64-linux-gnu-
#
# The steps, each of which is left out if its result exists:
#  1. The tarball is unpacked into the cache, which all checkouts share. These
#     files are never changed.
#  2. BUILD/linux becomes a source tree made of symbolic links: arch/guise leads
#     to this checkout, everything else to the cache. Only the files that
#     linux/patches/SERIES changes are copies, with the patches applied.
#  3. Kbuild works in BUILD/linux/out. Because that folder is directly below the
#     source, Kbuild uses relative paths only. So objects do not depend on where
#     the checkout is, and ccache finds those of other checkouts. Its output goes
#     to BUILD/linux.log.
#  4. What the image has is written into it, in the section .guise.description:
#     lines of a word and what it is about (docs/extensions.md). It is read from the
#     sources of what was linked, so it says no more than is there.
#  5. The image is kept in the cache under a fingerprint of everything that went
#     into it, so that another checkout with the same files only copies it.
#
# A second run computes the fingerprint and ends. If KERNEL_SRC is a tree, there
# is no fingerprint of it, and Kbuild looks for changes every time. Locks make it
# safe to run several builds at once, in one checkout or in many. A source tree or
# image that was not used for 30 days is removed from the cache, as are all images
# except the last 20.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd -P)
# shellcheck source=versions.env
. "$root/versions.env"

build=${1:-$root/build}
mkdir -p "$build"
build=$(cd "$build" && pwd -P)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/guise
source=${KERNEL_SRC:-$LINUX_TARBALL}
configs=${KERNEL_CONFIG:-net}
# shellcheck disable=SC2086 # a word for each
extensions=$(printf '%s\n' ${EXTENSIONS:-} | LC_ALL=C sort -u | paste -s -d ' ')
cross=${CROSS_COMPILE:-}
config=$build/linux.config
shadow=$build/linux
out=$shadow/out
log=$build/linux.log

say() {
	echo "linux/build.sh: $*" >&2
}

fail() {
	say "$*"
	exit 1
}

# Sets source_key, which identifies the source's content; it is empty for a tree.
# Debian's packages give a tarball the time of its release. So name, size and time
# together are different for any two releases, and the same on all machines.
identify_source() {
	if [ -f "$source" ]; then
		source_key=$(basename "$source" .tar.xz)-$(stat -L -c %s-%Y "$source")
		tree=$cache/source/$source_key
	elif [ -d "$source" ]; then
		source_key=
		tree=$(cd "$source" && pwd -P)
		find_series "$tree"
	elif [ -n "${KERNEL_SRC:-}" ]; then
		fail "KERNEL_SRC=$source does not exist"
	else
		fail "$source is missing: install Debian's package linux-source-6.12, as ./bootstrap" \
			"does, or set KERNEL_SRC to an unpacked kernel tree"
	fi
}

# Sets series to that of the tree $1. A series that the port does not support is refused.
find_series() {
	[ -f "$1/Makefile" ] || fail "$source is not a kernel source tree: it has no Makefile"
	series=$(sed -n -e 's/^VERSION = //p' -e 's/^PATCHLEVEL = //p' "$1/Makefile" | paste -s -d .)
	for known in $LINUX_SUPPORTED; do
		[ "$series" != "$known" ] || return 0
	done
	fail "$source is Linux ${series:-of an unknown version}, but guise supports only" \
		"$(echo "$LINUX_SUPPORTED" | sed 's/ / and /g'); set KERNEL_SRC to a tree of one of these," \
		"or leave it unset for Debian's linux-source-6.12"
}

# Refuses what is no extension.
check_extensions() {
	for name in $extensions; do
		case $name in
		*[!a-z0-9_]* | [!a-z]*)
			fail "EXTENSIONS: \"$name\" cannot be the name of an extension; expected small letters," \
				"digits and _, beginning with a letter"
			;;
		esac
		[ -d "$root/extensions/$name" ] ||
			fail "EXTENSIONS: there is no extension \"$name\"; valid are" \
				"$(cd "$root/extensions" && printf '%s\n' */Kconfig | sed 's,/Kconfig,,' | paste -s -d ' ' | sed 's/ /, /g')"
		for file in Kconfig Makefile config; do
			[ -f "$root/extensions/$name/$file" ] ||
				fail "extensions/$name has no file $file; docs/extensions.md says what it is for"
		done
	done
}

# Refuses extensions that are for other series than the source's, which their config names.
check_series() {
	for name in $extensions; do
		for_series=$(sed -n 's/^# Linux //p' "$root/extensions/$name/config")
		case " ${for_series:-$series} " in
		*" $series "*) ;;
		*)
			fail "EXTENSIONS: $name is for Linux $for_series, and $source is Linux $series; leave $name out," \
				"or KERNEL_SRC (docs/extensions.md)"
			;;
		esac
	done
}

# Hashes everything that decides what the image is.
fingerprint() {
	{
		echo "$source_key" "$configs" "$extensions"
		"${cross}gcc" -dumpmachine
		"${cross}gcc" --version | head -n 1
		"${cross}ld" --version | head -n 1
		cd "$root"
		folders='linux include/guise'
		for name in $extensions; do
			folders="$folders extensions/$name"
		done
		# shellcheck disable=SC2086 # a path for each
		find $folders -type f ! -name '.*' ! -name '*~' |
			LC_ALL=C sort | xargs -d '\n' sha256sum
	} | sed "s,$root/,," | sha256sum | cut -c 1-16
}

# Removes what was not used for 30 days from the cache folder $1.
prune() {
	find "$1" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
}

# Step 1: makes $tree. Much of the source is never built, but Kbuild reads the
# Kconfig and Makefile of every folder. So only C files, device trees and texts
# are left out.
unpack() {
	mkdir -p "$cache/source"
	exec 8>"$cache/source.lock"
	flock 8
	if [ ! -d "$tree" ]; then
		say "unpacking $source (once; 0.9 GB in $cache/source)"
		rm -rf "$cache"/source/tmp.* # of a run that was interrupted
		tmp=$(mktemp -d "$cache/source/tmp.XXXXXX")
		LC_ALL=C tar -x -f "$source" -C "$tmp" --strip-components=1 --no-same-owner \
			--exclude='*/drivers/gpu/*.[ch]' --exclude='*/sound/*.[ch]' \
			--exclude='*.dts' --exclude='*.dtsi' --exclude='*/Documentation/*/*' \
			--exclude='*/tools/testing' --exclude='*/tools/perf'
		find_series "$tmp"
		mv "$tmp" "$tree"
	fi
	find_series "$tree"
	touch "$tree"
	prune "$cache/source"
	exec 8>&-
}

# Step 2: the tree of links. One that was made for another source is made anew.
lay_over() {
	if [ "$(cat "$shadow/.source" 2>/dev/null)" != "$tree $root" ]; then
		rm -rf "$shadow"
		mkdir -p "$shadow/arch"
		for entry in "$tree"/*; do
			[ "$entry" = "$tree/arch" ] || ln -s "$entry" "$shadow/"
		done
		ln -s "$tree"/arch/* "$shadow/arch/"
		ln -sfn "$root/linux/arch/guise" "$shadow/arch/guise"
		echo "$tree $root" >"$shadow/.source"
	fi
	lay_extensions
	apply_patches
}

# extensions/ of the tree: a link to each, and what leads Kbuild to them.
lay_extensions() {
	mkdir -p "$shadow/extensions"
	find "$shadow/extensions" -type l -exec rm {} +
	for name in $extensions; do
		ln -s "$root/extensions/$name" "$shadow/extensions/$name"
	done
	# shellcheck disable=SC2086 # a line for each
	{
		printf '%s\n' $extensions | sed -n 's,..*,source "extensions/&/Kconfig",p' >"$shadow/extensions/Kconfig.new"
		printf '%s\n' $extensions | sed -n 's,..*,obj-y += &/,p' >"$shadow/extensions/Makefile.new"
	}
	for file in Kconfig Makefile; do
		cmp -s "$shadow/extensions/$file.new" "$shadow/extensions/$file" ||
			cp "$shadow/extensions/$file.new" "$shadow/extensions/$file"
		rm "$shadow/extensions/$file.new"
	done
}

# The patched files. A file keeps its time unless its content changes, so that a
# changed patch causes only the necessary files to be compiled. .patched lists all
# files that were ever patched in this build. A file that no patch changes any more
# gets its original content back as a copy: as a link it would be older than its
# object, and would not be compiled.
apply_patches() {
	set -- "$root/linux/patches/$series"/*.patch
	[ -e "$1" ] || set --
	work=$build/linux.patched # a fixed name: this run holds the lock
	rm -rf "$work"
	mkdir -p "$work/tree"
	{
		cat "$shadow/.patched" 2>/dev/null || true
		[ $# = 0 ] || sed -n 's,^+++ b/\([^[:blank:]]*\).*,\1,p' "$@"
	} | sort -u >"$work/list"
	while read -r file; do
		mkdir -p "$work/tree/$(dirname "$file")"
		[ ! -e "$tree/$file" ] || cp "$tree/$file" "$work/tree/$file"
	done <"$work/list"
	for patch; do
		patch -d "$work/tree" -p 1 -s -N -r - --no-backup-if-mismatch <"$patch" >&2 ||
			fail "${patch#"$root"/} does not apply to $source"
	done
	while read -r file; do
		top=${file%%/*}
		# A folder with patched files must be a real one, and so all folders in it.
		if [ -L "$shadow/$top" ]; then
			rm -rf "$shadow/.unfolded"
			cp -as "$tree/$top" "$shadow/.unfolded"
			rm "$shadow/$top"
			mv "$shadow/.unfolded" "$shadow/$top"
		fi
		if [ ! -e "$work/tree/$file" ]; then
			rm -f "$shadow/$file"
		elif ! cmp -s "$work/tree/$file" "$shadow/$file"; then
			mkdir -p "$shadow/$(dirname "$file")"
			cp --remove-destination "$work/tree/$file" "$shadow/$file"
		fi
	done <"$work/list"
	mv "$work/list" "$shadow/.patched"
	rm -rf "$work"
}

# Runs make in the kernel's source. The same source gives the same image every time.
kbuild() {
	cc=${cross}gcc
	if command -v ccache >/dev/null; then
		cc="ccache $cc"
		export CCACHE_DIR="$cache/ccache" CCACHE_MAXSIZE=1G CCACHE_NOHASHDIR=1
	fi
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL LC_ALL=C LOCALVERSION= \
		KBUILD_BUILD_TIMESTAMP='2024-11-17 00:00:00 UTC' \
		KBUILD_BUILD_USER=guise KBUILD_BUILD_HOST=guise KBUILD_BUILD_VERSION=1 \
		make -C "$shadow" O="$out" ARCH=guise CROSS_COMPILE="$cross" CC="$cc" --no-print-directory "$@"
}

# Turns kbuild's output into one line that counts files; if standard error is no
# terminal, into one line for each 100 files. Prints warnings and errors. The shell
# reads line by line; awk may wait for a full buffer first, as Debian's mawk does.
show_progress() {
	n=0 every=100 start='' end='\n'
	[ ! -t 2 ] || every=1 start='\r' end=''
	while IFS= read -r line; do
		case $line in
		"  CC "* | "  AS "*)
			n=$((n + 1))
			# shellcheck disable=SC2059 # the format has the start and end of the line
			[ $((n % every)) != 0 ] || printf "$start  KERNEL %d files of about 720$end" "$n"
			;;
		*warning[:\ ]* | *[Ee]rror[:\ ]*) printf '%s\n' "$line" ;;
		esac
	done
	[ -n "$end" ] || [ "$n" = 0 ] || echo
}

# Runs kbuild and shows its progress, or the end of its output if it fails.
compile() {
	rm -f "$log.failed"
	{ kbuild "$@" 2>&1 || : >"$log.failed"; } | tee "$log" | show_progress >&2
	if [ -e "$log.failed" ]; then
		# With several compilers at once, the end of the output may be of others.
		grep -A 4 -E '(error|undefined reference|No rule to make target)' "$log" | head -n 40 >"$log.failed"
		[ -s "$log.failed" ] || tail -n 20 "$log" >"$log.failed"
		cat "$log.failed" >&2
		fail "the kernel does not build; the whole output is in $log"
	fi
}

# Configures the kernel, and checks that it has all requested options: Kconfig says
# nothing when it drops one whose dependencies are missing.
configure() {
	{
		for name in $configs; do
			cat "$root/linux/configs/$name.config"
		done
		for name in $extensions; do
			cat "$root/extensions/$name/config"
		done
	} >"$config"
	from="linux/configs ($configs)${extensions:+ and extensions ($extensions)}"
	if ! KCONFIG_ALLCONFIG=$config kbuild -s allnoconfig >"$log" 2>&1; then
		cat "$log" >&2
		fail "$from: the kernel cannot be configured"
	fi
	lost=$(grep '^CONFIG_' "$config" | grep -v -x -F -f "$out/.config") || lost=
	# shellcheck disable=SC2086 # on one line
	[ -z "$lost" ] ||
		fail "$from: sets options that this kernel did not accept" \
			"(is a dependency missing?):" $lost
}

# The C files that were linked.
linked() {
	"${cross}ar" t "$out/vmlinux.a" | sed -n "s,\.o\$,.c,p" | while read -r file; do
		file=${file#"$out"/}
		[ ! -e "$shadow/$file" ] || echo "$shadow/$file"
	done
}

# Step 4: what the image has. A congestion control or a scheduler is a struct that is given to
# the function which makes it known; its name is in the struct.
#
# shellcheck disable=SC2016 # the dollars are awk's
describe() {
	echo "linux $(cat "$out/include/config/kernel.release")"
	echo "config $configs"
	[ -z "$extensions" ] || echo "extension $extensions"
	sed -n 's/^CONFIG_DEFAULT_TCP_CONG="\(.*\)"/default \1/p' "$out/.config"
	linked | xargs -d '\n' grep -l -E 'struct (tcp_congestion_ops|mptcp_sched_ops) [a-z0-9_]+|_register_(congestion_control|scheduler)\(&' |
		LC_ALL=C sort | xargs -d '\n' awk '
		FNR == 1 { what = "" }
		match($0, /struct (tcp_congestion_ops|mptcp_sched_ops) [a-z0-9_]+.*= *\{/) {
			n = split($0, word, /[ \t]+/)
			for (i = 1; i < n; i++)
				if (word[i] == "struct") {
					what = word[i + 2]
					break
				}
		}
		/^};/ { what = "" }
		what != "" && /^[ \t]*\.name[ \t]*=/ { split($0, word, "\""); name[FILENAME " " what] = name[what] = word[2] }
		match($0, /(tcp_register_congestion_control|mptcp_register_scheduler)\(&[a-z0-9_]+\)/) {
			call = substr($0, RSTART, RLENGTH)
			kind = call ~ /^tcp/ ? "congestion" : "scheduler"
			sub(/.*&/, "", call)
			sub(/\)/, "", call)
			known[++count] = kind " " FILENAME " " call
		}
		END {
			for (i = 1; i <= count; i++) {
				split(known[i], word, " ")
				if (word[2] " " word[3] in name) # a static one of its own
					print word[1], name[word[2] " " word[3]]
				else if (word[3] in name)
					print word[1], name[word[3]]
			}
		}'
}

# Copies the file $1 to $2 in one step: no reader sees a part of it.
place() {
	cp "$1" "$2.new"
	mv "$2.new" "$2"
}

exec 9>"$build/.kernel.lock"
flock 9

check_extensions
identify_source
key=
if [ -n "$source_key" ]; then
	key=$(fingerprint)
	if [ "$key" = "$(cat "$build/.kernel" 2>/dev/null)" ] && [ -e "$build/guise-kernel" ]; then
		exit 0
	fi
	kept=$cache/kernel/$key
	if [ -e "$kept/guise-kernel" ]; then
		touch "$kept"
		rm -f "$build/.kernel"
		place "$kept/guise-kernel.debug" "$build/guise-kernel.debug"
		place "$kept/guise-kernel" "$build/guise-kernel"
		echo "$key" >"$build/.kernel"
		exit 0
	fi
	unpack
fi

check_series
rm -f "$build/.kernel"
lay_over
configure
# First what is new: who writes an extension does not wait for the rest to learn of an error in it.
[ -z "$extensions" ] || compile extensions/
compile -j "${JOBS:-$(nproc)}" vmlinux
describe >"$out/description"
"${cross}strip" -s -o "$out/guise-kernel" "$out/vmlinux"
"${cross}objcopy" --add-section .guise.description="$out/description" \
	--set-section-flags .guise.description=readonly "$out/guise-kernel"
if ! cmp -s "$out/guise-kernel" "$build/guise-kernel"; then
	place "$out/vmlinux" "$build/guise-kernel.debug"
	place "$out/guise-kernel" "$build/guise-kernel"
fi

# Only if no file was edited meanwhile: the image may be of neither state.
if [ -n "$key" ] && [ "$key" = "$(fingerprint)" ]; then
	mkdir -p "$cache/kernel"
	tmp=$(mktemp -d "$cache/kernel/tmp.XXXXXX")
	cp "$out/guise-kernel" "$tmp/"
	cp "$out/vmlinux" "$tmp/guise-kernel.debug"
	# It fails if another checkout has stored the same image meanwhile.
	mv -T "$tmp" "$kept" 2>/dev/null || rm -rf "$tmp"
	prune "$cache/kernel"
	find "$cache/kernel" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' | sort -rn |
		tail -n +21 | cut -d ' ' -f 2- | xargs -r -d '\n' rm -rf
	echo "$key" >"$build/.kernel"
fi
