# shellcheck shell=bash
# Functions that the scripts share. Sourced, not run; expects `set -euo pipefail`. Sets: root.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# After a crash Swift's backtracer can hang, and keep the output pipe open.
export SWIFT_BACKTRACE=enable=no

# Debian packages that building and testing need.
build_packages=(pkg-config libasound2-dev libc-ares-dev libexpat1-dev libopus-dev libopusfile-dev libspeexdsp-dev
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
when_idle() { chrt --idle --pid 0 "$BASHPID" || say "no idle scheduling here; going on at the ordinary priority"; }

is_installed() { [[ $(dpkg-query -W -f '${Status}' "$1" 2>/dev/null) == "install ok installed" ]]; }

# Installs those of the named Debian packages that are missing.
ensure_packages() {
    local package missing=()
    command -v dpkg-query >/dev/null || { say "no dpkg here; expecting to find installed: $*" && return; }
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    ((${#missing[@]} > 0)) || return 0
    say "installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >&2
}

# Exits with advice unless there is a Swift that can build the package.
ensure_swift() {
    command -v swift >/dev/null || die "there is no swift here; install Swift 6.3 from https://www.swift.org/install"
    local version
    version=$(swift --version 2>/dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
    [[ $(printf '%s\n' 6.3 "$version" | sort -V | head -n 1) == 6.3 ]] ||
        die "Swift 6.3 or later is needed, and this is ${version:-of an unknown version}"
}

# Settings of a release; RELEASING.md says what each costs. Debugging information is left out with SwiftPM's own option, because SwiftPM
# adds another -g after `-Xcc -g0`.
release_settings=(--static-swift-stdlib -debug-info-format none)

# The tests' build: optimised, because tests in virtual time compute ten times as long otherwise, and in a folder of its own, so that
# neither it nor the release is built again for the other.
tests_folder=$root/.build-tests
tests_settings=(-c release --scratch-path "$tests_folder" -Xswiftc -enable-testing -debug-info-format none
    --explicit-target-dependency-import-check error)

# Builds the release if anything changed since it was built, and prints the path of the command. Arguments are passed to
# `swift build`, and override the settings above. With HANDSET_BUILT, a build of the command, that one is taken instead.
build_release() {
    if [[ -n ${HANDSET_BUILT-} ]]; then
        [[ -x $HANDSET_BUILT ]] || die "HANDSET_BUILT names no program: $HANDSET_BUILT"
        printf '%s\n' "$HANDSET_BUILT"
        return
    fi
    say "building the release (a first build takes some minutes)"
    swift build -c release --package-path "$root" --product handset "${release_settings[@]}" "$@" >&2
    printf '%s/handset\n' "$(swift build -c release --package-path "$root" --show-bin-path)"
}

# Makes a Python environment with the named modules in a folder of the working copy, and prints its path.
python_with() {
    local folder=$root/.build-python
    [[ -x $folder/bin/python ]] || python3 -m venv "$folder" >&2
    "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 || {
        "$folder/bin/python" -c "import $(printf '%s, ' "$@" | sed 's/, $//')" 2>/dev/null ||
            die "pip could not install $*"
        say "pip could not be asked; going on with the $* that is there"
    }
    printf '%s/bin/python\n' "$folder"
}
