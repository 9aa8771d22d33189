# shellcheck shell=bash disable=SC2154
# Roots of other Debians (sourced, after tests/setup.sh), so that nothing of them touches the machine. Callers set $here:
# a folder below build/, which gets root (the root itself) and build (what stands at the tree's build/ in there).

needs_root() { [ "$(id -u)" = 0 ] || fail 69 "a root of its own needs the rights of root: sudo $program $*"; }

# make_root SUITE WHAT: a minimal root of that Debian, unless there is one; WHAT says what for, and how large it gets.
make_root() {
    local mirror
    mkdir -p "$here/build"
    [ ! -e "$here/made" ] || return 0
    setup_packages debootstrap
    # The mirror that apt has here for Debian itself.
    # shellcheck disable=SC2016
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Identifier: Packages' | sed -n 's/ Debian$//p' | sed -n 1p)
    [ -n "$mirror" ] || fail 69 "apt has no source of Debian's packages here"
    say "$program will make a root of $1 in $here, from $mirror, $2"
    confirm "Make it?"
    rm -rf "$here/root"
    debootstrap --variant=minbase "$1" "$here/root" "$mirror" >"$here/debootstrap.log" 2>&1 ||
        fail 69 "debootstrap failed: $here/debootstrap.log"
    echo force-unsafe-io >"$here/root/etc/dpkg/dpkg.cfg.d/holdfast"  # a root that is lost is made again
    mkdir "$here/root/holdfast"
    touch "$here/made"
}

# inside COMMAND...: in the root, where the tree is at /holdfast and cannot be written to. Mounts and processes are gone
# when it ends, however it ends: a signal ends the first process there, and that takes the others with it. npm trusts
# there whom this machine trusts.
inside() {
    cp -L /etc/ssl/certs/ca-certificates.crt "$here/build/trusted.crt" 2>/dev/null || true
    # shellcheck disable=SC2016
    here=$here root=$root unshare --mount --pid --fork --kill-child sh -ec '
        to=$here/root
        mount --bind "$to" "$to"  # tests that mount something themselves need a root that is a mount
        mount -t proc proc "$to/proc"
        mount --rbind /dev "$to/dev"
        mount --bind "$root" "$to/holdfast"
        mount -o remount,bind,ro "$to/holdfast"
        mount --bind "$here/build" "$to/holdfast/build"
        trap "exit 130" INT
        trap "exit 143" TERM
        chroot "$to" /usr/bin/env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 CI=true PYTHONDONTWRITEBYTECODE=1 \
            NODE_EXTRA_CA_CERTS=/holdfast/build/trusted.crt \
            PATH="${before:-}/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
            sh -c '\''cd /holdfast && exec "$@"'\'' - "$@" </dev/null &
        wait "$!"' - "$@"
}
