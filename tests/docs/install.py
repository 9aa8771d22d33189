#!/usr/bin/env python3
"""The README installs in three lines, and the packages that these bring (Build-Depends of cmake/packages/debian/control) are
what the build needs: those of tests/setup.sh, which every run of the tests tries and which have what each backend names.
And set-up leaves no service of a new package enabled, and no policy of its own.

usage: install.py ROOT
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# Quicker for whoever builds again and again; and what every build of a Debian package has.
ONLY_FOR_US = {"ccache", "g++"}
ONLY_FOR_PACKAGES = {"debhelper-compat", "dh-sequence-python3", "pybuild-plugin-pyproject", "python3", "python3-setuptools"}


# What two packages have installed, and what is to be disabled of it.
FILES = """/etc/init.d/pigeon
/lib/systemd/system/pigeon.service
/lib/systemd/system/pigeon@.service
/usr/lib/systemd/system/loft.timer
/usr/lib/systemd/system/loft.service.d/more.conf
/usr/share/doc/pigeon/init.d/pigeon"""
DISABLED = ["update-rc.d pigeon disable", "deb-systemd-helper disable pigeon.service",
            "deb-systemd-helper disable loft.timer"]


def disabled(root):
    """What set-up calls for such packages, with functions in the place of the programs."""
    script = f"""set -euo pipefail; . {root}/tests/setup.sh
        dpkg() {{ [ "$*" = "-L pigeon loft" ] && echo "{FILES}"; }}
        update-rc.d() {{ echo "update-rc.d $*" >&3; }}
        deb-systemd-helper() {{ echo "deb-systemd-helper $*" >&3; false; }}
        disable_services pigeon loft 3>&1"""
    return subprocess.run(["bash", "-c", script], text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()


def of_backends(root):
    """The packages that the backends' CMakeLists.txt name: holdfast_backend_option(NAME FOUND WHAT PACKAGES RESULT)."""
    texts = [p.read_text() for p in (root / "backends").rglob("CMakeLists.txt")]
    words = r'(?:"([^"]*)"|([^\s"]+))'
    calls = [c for t in texts for c in re.findall(r"holdfast_backend_option\(([^)]*)\)", t)]
    packages = [re.findall(words, call)[3] for call in calls]
    boost = "${Boost_VERSION_MAJOR}.${Boost_VERSION_MINOR}"  # as setup.sh has it: $boost
    return {p.replace(boost, "$boost") for quoted, bare in packages for p in (quoted or bare).split()} - {"nothing"}


def policy_after_a_killed_installation(root, before):
    """What the machine's policy for services is after an installation that was killed, and one that was not."""
    script = f"""set -euo pipefail; . {root}/tests/setup.sh; policy=$1/policy-rc.d policy_saved=$1/saved
        [ "$2" = none ] || echo "$2" >"$policy"
        (forbid_services; trap - EXIT; kill -9 $BASHPID) || true
        grep -q 'exit 101' "$policy" || echo "services were not forbidden"
        forbid_services; allow_services
        cat "$policy" || echo none"""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(["bash", "-c", script, "-", folder, before], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout.strip()


def main():
    root = pathlib.Path(sys.argv[1])
    wanted = re.search(r'^packages_build="([^"]*)"', (root / "tests/setup.sh").read_text(), re.M)
    lines = re.search(r"^## Install\n.*?^```sh\n(.*?)^```$", (root / "README.md").read_text(), re.S | re.M)
    needs = re.search(r"^Build-Depends:\n((?: .*\n)+)", (root / "cmake/packages/debian/control").read_text(), re.M)
    if not wanted or not lines or not needs:
        sys.exit("tests/setup.sh has no list of packages, README.md no lines to install, or control no Build-Depends")
    several = len(lines[1].splitlines()) > 3 or "./cmake/packages" not in lines[1]
    if several:
        print("README.md has more than three lines to install, or they do not ask for ./cmake/packages")
    wanted = set(wanted[1].split()) - ONLY_FOR_US
    # The first alternative, of the newest release; Boost's version is in its packages' names.
    said = {re.sub(r"\d\.\d\d(?=-dev$)", "$boost", line.split()[0].rstrip(",")) for line in needs[1].splitlines()}
    said -= ONLY_FOR_PACKAGES
    for package in sorted(wanted - said):
        print(f"Build-Depends has no {package}, which the build needs")
    for package in sorted(said - wanted):
        print(f"Build-Depends has {package}, which tests/setup.sh does not install")
    forgotten = of_backends(root) - wanted
    for package in sorted(forgotten):
        print(f"packages_build of tests/setup.sh lacks {package}, which a backend needs")
    done = disabled(root)
    if done != DISABLED:
        print("tests/setup.sh disables other services:", *done, sep="\n  ")
    left = {before: policy_after_a_killed_installation(root, before) for before in ("none", "one of the machine's")}
    for before, after in left.items():
        if before != after:
            print(f"after a killed installation the policy for services is '{after}'; before, it was '{before}'")
    sys.exit(several or wanted != said or bool(forgotten) or done != DISABLED or any(b != a for b, a in left.items()))


if __name__ == "__main__":
    main()
