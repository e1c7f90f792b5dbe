# shellcheck shell=bash disable=SC2034
# Functions that the scripts share. Sourced, not run; expects `set -euo pipefail`. Sets: root.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# After a crash Swift's backtracer can hang, and keep the output pipe open.
export SWIFT_BACKTRACE=enable=no

# Debian packages that building and testing need.
build_packages=(pkg-config libasound2-dev libc-ares-dev libexpat1-dev libjemalloc2 libopus-dev libopusfile-dev libspeexdsp-dev
    libsqlite3-dev libsrtp2-dev libssl-dev libyaml-dev)

# Reports progress on standard error, so that results on standard output stay clean.
say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# Reports an error and exits.
die() {
    say "$*"
    exit 1
}

as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "this needs root, and there is no sudo here: $*"
    fi
}

# Has the calling shell, and what it starts from now on, run only when nothing else wants the processor. A nice value would not do:
# Swift's build starts its compilers with the ordinary one.
when_idle() {
    # Only where there is a way back, which a user without CAP_SYS_NICE may not have.
    if (chrt --idle --pid 0 "$BASHPID" && chrt --other --pid 0 "$BASHPID") 2>/dev/null; then
        chrt --idle --pid 0 "$BASHPID"
    else
        say "no way back from idle scheduling here; going on at the ordinary priority"
    fi
}

# Prints those of the named Debian packages that are not installed.
missing_packages() {
    comm -13 <({ dpkg-query -W -f '${Status} ${Package}\n' "$@" 2>/dev/null || true; } | sed -n 's/^install ok installed //p' | sort -u) \
        <(printf '%s\n' "$@" | sort -u)
}

# Installs those of the named Debian packages that are missing. Scripts that run side by side install one after another.
ensure_packages() {
    local missing=() status=0
    command -v dpkg-query >/dev/null || { say "no dpkg here; expecting to find installed: $*" && return; }
    [[ -n $(missing_packages "$@") ]] || return 0
    exec 9<"$root"
    flock 9
    mapfile -t missing < <(missing_packages "$@")
    if ((${#missing[@]} > 0)); then
        say "installing ${missing[*]}"
        # What a package starts must not inherit the lock.
        as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 9<&- || status=$?
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >&2 9<&- || status=$?
    fi
    exec 9<&-
    return "$status"
}

# Installs PostgreSQL's server, without the database and the service that its package makes on a machine that has none.
ensure_postgresql() {
    [[ -n $(missing_packages postgresql-15) ]] || return 0
    ensure_packages postgresql-common
    local settings=/etc/postgresql-common/createcluster.d/handset-tests.conf
    as_root sh -c "mkdir -p ${settings%/*} && echo 'create_main_cluster = false' >$settings"
    ensure_packages postgresql-15
    as_root rm -f "$settings"
}

# Exits with advice unless there is a Swift that can build the package.
ensure_swift() {
    command -v swift >/dev/null || die "there is no swift here; install Swift 6.3 from https://www.swift.org/install"
    local version
    version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
    [[ $(printf '%s\n' 6.3 "$version" | sort -V | head -n 1) == 6.3 ]] ||
        die "Swift 6.3 or later is needed, and this is ${version:-of an unknown version}"
}

# Builds as `swift build` does with the same arguments, and sooner; the first argument is the folder of the build. Compilers take an eighth
# less time with jemalloc. Of the modules that it can compile next SwiftPM takes the last by name, so the longest chain, which begins with
# Atomics, would wait for all others.
build_swift() {
    local folder=$1 allocator argument first=()
    shift
    allocator=/usr/lib/$(uname -m)-linux-gnu/libjemalloc.so.2
    [[ -r $allocator ]] || allocator=
    if [[ ! -e $folder/release/Modules/Atomics.swiftmodule ]]; then
        for argument in "$@"; do
            case $argument in
                --product | --build-tests) first+=(--target Atomics) ;;
                handset) ;;
                *) first+=("$argument") ;;
            esac
        done
        LD_PRELOAD=$allocator swift build "${first[@]}" || return
    fi
    LD_PRELOAD=$allocator swift build "$@"
}

# Settings of a release; RELEASING.md says what each costs. Debugging information is left out with SwiftPM's own option, because SwiftPM
# adds another -g after `-Xcc -g0`.
release_settings=(--static-swift-stdlib -debug-info-format none)

# The tests' build: optimised, because tests in virtual time compute ten times as long otherwise, and in a folder of its own, so that
# neither it nor the release is built again for the other.
tests_folder=$root/.build-tests
tests_settings=(-c release --scratch-path "$tests_folder" -Xswiftc -enable-testing -debug-info-format none
    --explicit-target-dependency-import-check error)

# Without a Package.resolved, which is not committed, SwiftPM would take the newest versions of today. Takes those of the list.
pin_versions() { [[ -e $root/Package.resolved ]] || "$root/scripts/versions" --pin; }

# SwiftPM needs seconds to find that nothing changed. The stamp has the compiler, the settings, the program and the versions of packages of a
# build; it is as old as the build's beginning.
release_stamp=$root/.build/release-stamp
release_text() {
    printf '%s\n' "$root" "$(readlink -f "$(command -v swift)")" "${release_settings[@]}" "$@"
    stat --format='%Y %s' "$root/.build/release/handset"
    cksum <"$root/Package.resolved"
}
is_release_current() {
    [[ -x $root/.build/release/handset && -r $release_stamp && $(<"$release_stamp") == "$(release_text "$@" 2>/dev/null)" ]] || return
    local newer
    newer=$(find "$root/Package.swift" "$root/Sources" -newer "$release_stamp" -print -quit 2>&1)
    [[ -z $newer ]]
}

# Builds the release if anything changed since it was built, and prints the path of the command. Arguments are passed to
# `swift build`, and override the settings above. With HANDSET_BUILT, a build of the command, that one is taken instead.
build_release() {
    if [[ -n ${HANDSET_BUILT-} ]]; then
        [[ -x $HANDSET_BUILT ]] || die "HANDSET_BUILT names no program: $HANDSET_BUILT"
        printf '%s\n' "$HANDSET_BUILT"
        return
    fi
    if ! is_release_current "$@"; then
        say "building the release (a first build takes some minutes)"
        pin_versions || return  # The caller's -e does not reach into a substitution.
        rm -f "$release_stamp"
        mkdir -p "$root/.build"
        touch "$release_stamp.new"  # What changes during the build is newer.
        build_swift "$root/.build" -c release --package-path "$root" --product handset "${release_settings[@]}" "$@" >&2 || return
        release_text "$@" >"$release_stamp" || return
        touch --reference="$release_stamp.new" "$release_stamp"
    fi
    printf '%s\n' "$(readlink -f "$root/.build/release")/handset"
}

# Makes a Python environment with the named modules in a folder of the working copy, and prints its path.
python_with() {
    local folder=$root/.build-python
    mkdir -p "$folder"
    exec 9<"$folder"
    flock 9  # Scripts that run side by side share the folder.
    [[ -x $folder/bin/pip ]] || python3 -m venv "$folder" >&2
    "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 || {
        "$folder/bin/python" -c "import $(printf '%s, ' "$@" | sed 's/, $//')" 2>/dev/null ||
            die "pip could not install $*"
        say "pip could not be asked; going on with the $* that is there"
    }
    exec 9<&-
    printf '%s/bin/python\n' "$folder"
}
