#!/usr/bin/env python3
"""The debian/ folder that cmake/packages makes fits the tree: what the installation has is in exactly one package, each
library has one, and versions and functions are those of the sources. Nothing is compiled: tests/package/deb builds the packages.

debian.py ROOT WORK    every mistake on a line of its own, exit 1 when there is one
debian.py ROOT WORK --selftest    each rule is broken once in a copy, and has to be noticed
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import deb_user
import hollow
import tree

LIBDIR = "lib/of-this-machine"


class Packaging:
    def __init__(self, folder):
        self.folder = folder
        self.control = (folder / "control").read_text(encoding="utf-8")
        self.packages = re.findall(r"^Package: (\S+)$", self.control, re.M)

    def lines(self, name):
        file = self.folder / name
        return [l for l in file.read_text(encoding="utf-8").splitlines() if l.strip()] if file.is_file() else []

    def patterns(self):
        """[(package, pattern)] of each .install; "-" for what no package has."""
        found = [(p, l.split()[0]) for p in self.packages for l in self.lines(f"{p}.install")]
        return found + [("-", l) for l in self.lines("not-installed")]

    def stanza(self, package):
        return next(part for part in self.control.split("\n\n") if f"Package: {package}\n" in part)


def fits(pattern, path):
    """As dh_install reads it: a file, or a folder with all in it; a star stays within one folder."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*") + "(/.*)?", path) is not None


def installed(root, work):
    """The files of an installation as the packages have it, made without compiling: the programs and libraries are empty."""
    build, target = work / "build", work / "target"
    shutil.rmtree(target, ignore_errors=True)
    shutil.rmtree(build, ignore_errors=True)
    subprocess.run(["cmake", "-G", "Ninja", "-S", root, "-B", build, "-DBUILD_SHARED_LIBS=ON", "-DCMAKE_SKIP_RPATH=ON",
                    "-DCMAKE_INSTALL_PREFIX=/usr", f"-DCMAKE_INSTALL_LIBDIR={LIBDIR}"], check=True, stdout=subprocess.DEVNULL)
    hollow.install(build, env={**os.environ, "DESTDIR": str(target)})
    return sorted(p.relative_to(target).as_posix() for p in target.rglob("*") if not p.is_dir())


def of_files(packaging, files):
    patterns = packaging.patterns()
    for path in files:
        owners = {package for package, pattern in patterns if fits(pattern, path)}
        if len(owners) != 1:
            yield f"{path} is in {' and in '.join(sorted(owners)) or 'no package: write it into a .install file'}"
    for package, pattern in patterns:
        if not any(fits(pattern, path) for path in files) and not pattern.startswith("usr/lib/python3"):
            yield f"{package}: nothing is installed as {pattern}"


def of_libraries(packaging, root, files):
    """A package for each library, named by its SONAME; and libholdfast-dev wants each, of its own version."""
    libraries = {m.groups() for m in (re.fullmatch(r".*/(lib[a-z-]+)\.so\.(\d+(?:\.\d+)?)", f) for f in files) if m}
    minor = ".".join(tree.version().split(".")[:2])
    wanted = {name + so for name, so in libraries if so == ("1" if name == "libholdfast-c" else minor)}
    have = {p for p in packaging.packages if re.fullmatch(r"libholdfast[a-z-]*[\d.]+", p)}
    yield from (f"control has no package {p}" for p in sorted(wanted - have))
    yield from (f"control has {p}, and the tree has no such library" for p in sorted(have - wanted))
    depends = packaging.stanza("libholdfast-dev")
    yield from (f"libholdfast-dev does not depend on {p} of its own version" for p in ("libholdfast-c1", f"libholdfast{minor}")
                if f" {p} (= ${{binary:Version}})" not in depends)


def of_versions(packaging, root):
    version = tree.version()
    first = packaging.lines("changelog")[0]
    if not re.match(rf"holdfast \({re.escape(version)}-\d+\) ", first):
        yield f"changelog begins with '{first}', and the version is {version}"
    if f'version = "{version}"' not in (root / "core/python/pyproject.toml").read_text(encoding="utf-8"):
        yield f"core/python/pyproject.toml has another version than {version}"


def of_functions(packaging, root):
    header = (root / "core/c/include/holdfast.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"^HF_API .*?\b(hf_\w+)\(", header, re.M))
    listed = {line.strip().split("@")[0] for line in packaging.lines("libholdfast-c1.symbols")[1:]}
    yield from (f"libholdfast-c1.symbols lacks {f} of holdfast.h" for f in sorted(declared - listed))
    yield from (f"libholdfast-c1.symbols has {f}, which holdfast.h lacks" for f in sorted(listed - declared))


def mistakes(root, debian, files):
    packaging = Packaging(debian)
    return [*of_files(packaging, files), *of_libraries(packaging, root, files), *of_versions(packaging, root),
            *of_functions(packaging, root)]


# (file, what is replaced in it, by what, what has to be said)
BROKEN = [
    ("holdfast.install", "usr/bin/holdfast\n", "", "usr/bin/holdfast is in no package"),
    ("libholdfast0.1.install", "libholdfast.so.*", "*.so.*", "is in libholdfast-etcd0.1 and in libholdfast0.1"),
    ("not-installed", "usr/share", "usr/share/man/man9\nusr/share", "-: nothing is installed as usr/share/man/man9"),
    ("control", "Package: libholdfast-redis0.1", "Package: libholdfast-redis0.2", "control has no package libholdfast-redis0.1"),
    ("control", " libholdfast-c1 (= ${binary:Version}),\n", "", "libholdfast-dev does not depend on libholdfast-c1"),
    ("changelog", "holdfast (0", "holdfast (9", "changelog begins with"),
    ("libholdfast-c1.symbols", " hf_open@Base 0.1.0\n", "", "libholdfast-c1.symbols lacks hf_open"),
    ("libholdfast-c1.symbols", "hf_ask@", "hf_task@", "libholdfast-c1.symbols has hf_task"),
]


def selftest(root, debian, files):
    unnoticed = []
    for name, old, new, said in BROKEN:
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "debian"
            shutil.copytree(debian, copy)
            text = (copy / name).read_text(encoding="utf-8")
            if old not in text:
                unnoticed.append(f"{name} has no '{old}' to be broken")
                continue
            (copy / name).write_text(text.replace(old, new, 1), encoding="utf-8")
            if not any(said in line for line in mistakes(root, copy, files)):
                unnoticed.append(f"not noticed in {name}: {said}")
    return unnoticed


def main():
    root, work = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    files = installed(root, work)
    deb_user.Installed(work / "user")  # only tests/package/deb runs more of it
    debian = work / "debian"
    shutil.rmtree(debian, ignore_errors=True)
    subprocess.run([root / "cmake/packages/debian-folder", debian], check=True)
    wrong = selftest(root, debian, files) if "--selftest" in sys.argv else mistakes(root, debian, files)
    print(*wrong, f"{len(files)} files, {len(wrong)} mistakes", sep="\n")
    sys.exit(1 if wrong or len(files) < 50 else 0)


if __name__ == "__main__":
    main()
