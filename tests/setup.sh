# shellcheck shell=bash disable=SC2034,SC2154
# Set-up for tests/run and bench/run (sourced): Debian packages, with a question and without starting a
# service, and where things are written. Callers set $root (the source tree) and $yes (1: no question).

# Some packages have a version in their name: Debian 12 has Boost 1.81 beside its default, Debian 13 has 1.83.
case $(. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}") in
    13) boost=1.83 postgresql=17 ;;
    *) boost=1.81 postgresql=15 ;;
esac
packages_build="g++ cmake ninja-build pkg-config ccache libboost$boost-dev libboost-url$boost-dev
    libboost-json$boost-dev libhiredis-dev libssl-dev libsqlite3-dev libtomlplusplus-dev libcli11-dev
    libfmt-dev libpqxx-dev libpq-dev libmariadb-dev libzookeeper-st-dev
    libnghttp2-dev libprotobuf-dev protobuf-compiler"
packages_servers="redis-server redis-tools openssl postgresql-$postgresql pgbouncer mariadb-server-core
    mariadb-client-core stunnel4 libzookeeper-java default-jre-headless etcd-server etcd-client"
packages_tests="abigail-tools catch2 libboost-context$boost-dev python3 python3-redis clang-format groff-base fish zsh iptables iproute2 systemd
    python3-kazoo python3-etcd3 libcurator-recipes-java libslf4j-java ecj npm lua5.1 liblua5.1-0-dev
    spin chromium doxygen fonts-dejavu-core python3-yaml python3-prometheus-client
    python3-pip python3-setuptools python3-wheel python3-uvloop mypy"
packages_all="galera-4 haproxy patroni python3-etcd"
packages_fuzz="clang libclang-rt-14-dev"
packages_bench="npm"
packages_peers="python3 python3-redis python3-kazoo python3-etcd3 libcurator-recipes-java libslf4j-java
    ecj npm"

say() { printf '%s\n' "$*"; }
fail() {
    local code=$1
    shift
    printf '%s: %s\n' "$program" "$*" >&2
    exit "$code"
}

# counts LINE: adds its "N passed, N failed" to $passed and $failed; without that line, one failure and false.
counts() {
    if [[ $1 =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
    else
        failed=$((failed + 1))
        return 1
    fi
}

# The program that a package is wanted for: where it is there, however it came, the package is not needed.
# Without a line here only the package itself counts.
program_of() {
    case $1 in
        g++) echo g++ ;;
        cmake) echo cmake ;;
        ninja-build) echo ninja ;;
        pkg-config) echo pkg-config ;;
        ccache) echo ccache ;;
        redis-server) echo redis-server ;;
        redis-tools) echo redis-cli ;;
        openssl) echo openssl ;;
        clang) echo clang++ ;;
        clang-format) echo clang-format ;;
        npm) echo npm ;;
        chromium) echo chromium ;;
        doxygen) echo doxygen ;;
        pgbouncer) echo pgbouncer ;;
        haproxy) echo haproxy ;;
        patroni) echo patroni ;;
        mariadb-server-core) echo mariadbd ;;
        mariadb-client-core) echo mariadb ;;
        default-jre-headless) echo java ;;
        systemd) echo systemd-analyze ;;
        etcd-server) echo etcd ;;
        etcd-client) echo etcdctl ;;
    esac
}

missing_packages() {
    local package command
    for package in "$@"; do
        command=$(program_of "$package")
        if [ -n "$command" ]; then
            command -v "$command" >/dev/null 2>&1 && continue
        fi
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] && continue
        echo "$package"
    done
}

# A question on a terminal; elsewhere there is nobody to ask.
confirm() {
    [ "$yes" = 1 ] && return 0
    { [ -t 0 ] && [ -t 2 ]; } || return 0
    local answer
    read -r -p "$1 [y/N] " answer
    case $answer in [yY] | [yY][eE][sS]) return 0 ;; esac
    fail 69 "nothing was installed"
}

policy=/usr/sbin/policy-rc.d
policy_saved=$policy.before-holdfast
policy_mark='# Put here by Holdfast for the time of an installation.'

# No package starts a service while the file below says 101; what was there comes back afterwards. What a killed
# installation has left behind is not what was there.
forbid_services() {
    if grep -qsF "$policy_mark" "$policy"; then rm -f "$policy"; fi
    if [ -e "$policy" ] && [ ! -e "$policy_saved" ]; then mv "$policy" "$policy_saved"; fi
    mkdir -p "${policy%/*}"
    printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" >"$policy"
    chmod 755 "$policy"
    trap allow_services EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}
allow_services() {
    rm -f "$policy"
    if [ -e "$policy_saved" ]; then mv "$policy_saved" "$policy"; fi
    trap - EXIT INT TERM HUP
}

installed_packages() {
    dpkg-query -W -f='${db:Status-Status} ${binary:Package}\n' | sed -n 's/^installed //p' | LC_ALL=C sort
}
# A package also enables its services for the next boot; nobody here asked for that. A unit with an @ is a
# template, which is enabled by name.
disable_services() {
    local file
    for file in $(dpkg -L "$@" |
        grep -E '^(/etc/init\.d/[^/]+|(/usr)?/lib/systemd/system/[^/@]+\.(service|socket|timer))$'); do
        case $file in
            /etc/init.d/*) update-rc.d "${file##*/}" disable ;;
            *) deb-systemd-helper disable "${file##*/}" ;;
        esac >/dev/null 2>&1 || true
    done
}

setup_packages() {
    local wanted missing line plan
    # shellcheck disable=SC2086
    set -- $1
    wanted=("$@")
    if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
        fail 69 "this is not a Debian system; install the packages yourself.
  Needed (Debian 12 names): ${wanted[*]}
  With all of that in place: $program --no-setup"
    fi
    if grep -qsF "$policy_mark" "$policy" && [ -w "$policy" ]; then allow_services; fi  # of a killed installation
    mapfile -t missing < <(missing_packages "${wanted[@]}")
    [ ${#missing[@]} -eq 0 ] && return 0

    line="apt-get install --no-install-recommends ${missing[*]}"
    if [ "$(id -u)" != 0 ]; then
        fail 69 "some packages are missing and only root can install them:
  sudo $line"
    fi

    export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
    local apt=(apt-get --no-install-recommends -o Dpkg::Use-Pty=0)
    if ! "${apt[@]}" -s install "${missing[@]}" >/dev/null 2>&1; then
        confirm "The lists of apt do not know all packages: run apt-get update?"
        say "$program: apt-get update"
        apt-get update -qq || fail 69 "apt-get update failed: check the network"
    fi
    # --assume-no prints the plan with its sizes and does nothing.
    plan=$("${apt[@]}" --assume-no install "${missing[@]}" 2>&1 |
        grep -E '^(Need to get|After this operation|E:)' || true)
    case $plan in
        *E:*) fail 69 "apt cannot install what is missing (this was made for Debian 12, bookworm, and 13, trixie):
$plan" ;;
    esac
    say "$program will install: ${missing[*]}"
    say "$plan"
    say "It starts no service, now or at the next boot."
    confirm "Install them?"
    local before status=0 new
    before=$(installed_packages)
    forbid_services
    "${apt[@]}" install -y -qq "${missing[@]}" </dev/null >"$root/build/apt.log" 2>&1 || status=$?
    mapfile -t new < <(LC_ALL=C comm -13 <(echo "$before") <(installed_packages))
    [ ${#new[@]} -eq 0 ] || disable_services "${new[@]}"
    allow_services
    if [ $status != 0 ]; then
        tail -n 20 "$root/build/apt.log" >&2
        fail 69 "apt-get install failed (the whole output: build/apt.log)"
    fi
}

# One compiler cache for all build folders, inside build/. What one compiled serves the others: paths inside build/
# are relative for the cache, and those of the sources are the same everywhere. What is not in it is compiled at once,
# without another run of the preprocessor (CCACHE_DEPEND).
setup_build() {
    say "$program writes to $root/build and to temporary folders below ${TMPDIR:-/tmp}; nothing else."
    launcher=
    if command -v ccache >/dev/null 2>&1; then
        launcher=ccache
        export CCACHE_DIR=${CCACHE_DIR:-$root/build/ccache} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_MAXSIZE=2G
        export CCACHE_SLOPPINESS=pch_defines,time_macros  # precompiled headers are refused without
        export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root/build}
    fi
}

# configure PRESET [OPTION ...]
configure() {
    say "== $1: configure"
    (cd "$root" && cmake --preset "$@" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher")
}

# build PRESET JOBS [TARGET ...]
build() {
    local preset=$1 jobs=$2
    shift 2
    say "== $preset: build (-j$jobs)"
    cmake --build "$root/build/$preset" -j "$jobs" ${1:+--target "$@"}
}

# slowest FILE: the longest of its lines "SECONDS WHAT".
slowest() {
    say "== the slowest steps, in seconds; tests run in parallel"
    sort -rn "$1" | sed -n 1,15p  # `head` would not read all, which ends the script (pipefail)
}
