#!/usr/bin/env python3
"""Installs Holdfast into a fresh prefix and is its first user, in every way that is documented.

check.py --source TREE --work FOLDER [--cxx C++] [--flags F] [--debug-flags F] [--launcher ccache] [--werror ON] static|shared
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys

# {name: (URL, what a first acquire does, its client libraries)}, from each backend's folder.
BACKENDS = {}
for facts in sorted((pathlib.Path(__file__).resolve().parents[2] / "backends").rglob("backend.json")):
    package = json.loads(facts.read_text())["package"]
    BACKENDS[facts.parent.name] = (package["url"], package["first"], set(package["libraries"]))
# Built from sources once more by a user's own project, which no compiler cache has: one that is a file, and
# one with connections.
BY_SOURCE = ["sqlite", "redis"]
EVERY_CLIENT_LIBRARY = set().union(*(backend[-1] for backend in BACKENDS.values()))


def not_tried(source):
    """The backends of the tree that are not above, and the other way round."""
    texts = [p.read_text() for p in (source / "backends").rglob("CMakeLists.txt")]
    return {n for t in texts for n in re.findall(r"holdfast_backend\((\w+)", t)} ^ set(BACKENDS)


class Failed(Exception):
    pass


def run(*command, cwd=None, env=None, fails=False):
    """The output; Failed when the command did not end as expected."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if (done.returncode != 0) != fails:
        raise Failed(f"{' '.join(words)}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def expect(what, condition, text=""):
    if not condition:
        raise Failed(f"{what}\n{text}")
    print(f"  ok: {what}", flush=True)


def closed_port():
    """A port that nobody listens on: it stays bound, without listening, while the check runs."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    return holder, holder.getsockname()[1]


class Check:
    def __init__(self, arguments):
        self.source = arguments.source
        self.shared = arguments.linkage == "shared"
        self.flags = arguments.flags
        self.work = arguments.work / arguments.linkage
        self.prefix = self.work / "prefix"
        self.cxx = arguments.cxx
        self.launcher = arguments.launcher
        self.warnings = f"-DHOLDFAST_WERROR={arguments.werror}"
        # All is compiled once more, as tests/run --unity does it, with its warnings: its compiler cache has the objects then.
        self.cmake = ["cmake", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={arguments.cxx}",
                      f"-DCMAKE_CXX_FLAGS={arguments.flags}", "-DCMAKE_BUILD_TYPE=Debug",
                      f"-DCMAKE_CXX_FLAGS_DEBUG={arguments.debug_flags}", "-DCMAKE_UNITY_BUILD=ON",
                      f"-DBUILD_SHARED_LIBS={'ON' if self.shared else 'OFF'}"]
        if arguments.launcher:
            self.cmake.append(f"-DCMAKE_CXX_COMPILER_LAUNCHER={arguments.launcher}")
        self.holder, self.port = closed_port()

    def build(self, source, build, *options, targets=(), env=None):
        output = run(*self.cmake, "-S", source, "-B", build, *options, env=env)
        run("cmake", "--build", build, *(["--target", *targets] if targets else []))
        return output

    def install(self):
        shutil.rmtree(self.prefix, ignore_errors=True)
        options = [f"-DHOLDFAST_BACKEND_{name.upper()}=ON" for name in BACKENDS]
        self.build(self.source, self.work / "build", "-DHOLDFAST_BUILD_CLI=OFF", self.warnings,
                   f"-DCMAKE_INSTALL_PREFIX={self.prefix}", *options)
        run("cmake", "--install", self.work / "build")
        kind = "*.so.0.1.0" if self.shared else "*.a"
        found = sorted(path.name for path in self.prefix.glob(f"lib*/**/lib{kind}"))
        expect(f"installed {', '.join(found)}", len(found) == 1 + len(BACKENDS))
        # Moved once, so that a path baked into the package is found out.
        moved = self.work / "moved"
        shutil.rmtree(moved, ignore_errors=True)
        self.prefix.rename(moved)
        self.prefix = moved

    def environment(self):
        """What finds the package where no tool looks by itself."""
        return dict(os.environ, LD_LIBRARY_PATH=str(self.libdir()),
                    PKG_CONFIG_PATH=str(self.libdir() / "pkgconfig"), CMAKE_PREFIX_PATH=str(self.prefix))

    def libdir(self):
        return next(self.prefix.glob("lib*/**/pkgconfig")).parent

    def use(self, program, backend, way):
        url, ending, own = BACKENDS[backend]
        foreign, target = ("redis://127.0.0.1:1", "Holdfast::redis") if backend == "sqlite" else \
            ("sqlite:///x.db", "Holdfast::sqlite")
        url = url.format(work=self.work, closed=self.port)
        env = self.environment()
        output = run(program, url, ending, foreign, env=env)
        expect(f"{way}: a program with Holdfast::{backend} alone opens {url.split(':')[0]}:", True)
        expect(f"{way}: it is told to link {target}", f"link {target}" in output, output)
        libraries = run("ldd", program, env=env)
        expect(f"{way}: its client libraries are in its ldd", all(name in libraries for name in own),
               libraries)
        others = {name for name in EVERY_CLIENT_LIBRARY - own if name in libraries}
        expect(f"{way}: no other client library in its ldd", not others, libraries)

    def find_package(self, backend):
        build = self.work / f"find_package-{backend}"
        shutil.rmtree(build, ignore_errors=True)
        options = [f"-DCONSUMER_BACKENDS={backend}"]
        if self.shared:  # a shared library's users need no client library of their own
            options += [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON"
                        for name in ("PkgConfig", "OpenSSL", "SQLite3", "boost_url")]
        self.build(self.source / "tests/package/consumer", build, *options, env=self.environment())
        self.use(build / f"consumer_{backend}", backend, "find_package")

    def pkg_config(self, backend):
        env = self.environment()
        compiling = run("pkg-config", "--cflags", f"holdfast-{backend}", env=env).split()
        linking = run("pkg-config", "--libs", f"holdfast-{backend}", env=env).split()
        program = self.work / f"pkg-config-{backend}"
        compiler = [self.launcher, self.cxx] if self.launcher else [self.cxx]
        run(*compiler, "-std=c++20", *self.flags.split(), "-o", f"{program}.o", "-c",
            self.source / "tests/package/consumer/consumer.cpp", *compiling)
        # --as-needed is the default of some distributions; it must not drop the backend.
        run(self.cxx, *self.flags.split(), "-Wl,--as-needed", "-o", program, f"{program}.o", *linking)
        self.use(program, backend, "pkg-config")

    def c_programs(self):
        env = self.environment()
        flags = run("pkg-config", "--cflags", "--libs", "holdfast-c", env=env).split()
        program = self.work / "c-pkg-config"
        run("cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-o", program,
            *(self.source / "tests/c").glob("*.c"), *flags)
        expect("pkg-config: a program in C99 runs", "ok: memory:" in run(program, "memory:", env=env))
        build = self.work / "c-find_package"
        shutil.rmtree(build, ignore_errors=True)
        hidden = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("Boost", "OpenSSL", "PkgConfig", "SQLite3")]
        run("cmake", "-G", "Ninja", "-S", self.source / "tests/package/c_consumer", "-B", build,
            *hidden, env=env)
        run("cmake", "--build", build)
        expect("find_package: a project in C alone builds, and runs", "ok: memory:" in run(build / "consumer", "memory:"))
        expect("the library shows hf_* alone",
               "functions" in run(sys.executable, self.source / "tests/c/symbols.py", self.libdir() / "libholdfast-c.so.1",
                                  self.prefix / "include/holdfast.h"))

    def add_subdirectory(self):
        build = self.work / "add_subdirectory"
        self.build(self.source / "tests/package/consumer", build,
                   f"-DHOLDFAST_SOURCE={self.source}", f"-DCONSUMER_BACKENDS={';'.join(BACKENDS)}", self.warnings,
                   targets=[f"consumer_{backend}" for backend in BY_SOURCE])
        for backend in BY_SOURCE:
            self.use(build / f"consumer_{backend}", backend, "add_subdirectory")
        cache = (build / "CMakeCache.txt").read_text()
        expect("add_subdirectory: neither command nor tests are built for the user",
               "HOLDFAST_BUILD_CLI:BOOL=OFF" in cache and "HOLDFAST_BUILD_TESTS:BOOL=OFF" in cache)

    def missing_component(self):
        build = self.work / "missing"
        shutil.rmtree(build, ignore_errors=True)
        output = run(*self.cmake, "-S", self.source / "tests/package/consumer", "-B", build,
                     f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCONSUMER_BACKENDS=carrier_pigeon",
                     fails=True)
        text = " ".join(output.split())
        expect("find_package: a component that was not built is explained",
               "built without the 'carrier_pigeon' backend" in text
               and "-DHOLDFAST_BACKEND_CARRIER_PIGEON=ON" in text, output)

    def missing_client_library(self):
        build = self.work / "without"
        shutil.rmtree(build, ignore_errors=True)
        options = ["-DHOLDFAST_BUILD_CLI=OFF", "-DCMAKE_DISABLE_FIND_PACKAGE_SQLite3=ON"]
        output = run(*self.cmake, "-S", self.source, "-B", build, *options)
        expect("AUTO leaves a backend out and names the package",
               "apt install libsqlite3-dev" in output and "left out: sqlite" in output, output)
        output = run(*self.cmake, "-S", self.source, "-B", build, *options,
                     "-DHOLDFAST_BACKEND_SQLITE=ON", fails=True)
        expect("ON insists and names the package", "apt install libsqlite3-dev" in output, output)

    def all(self):
        expect("every backend of the tree is tried", not not_tried(self.source), str(not_tried(self.source)))
        self.install()
        for backend in BACKENDS:
            self.find_package(backend)
            self.pkg_config(backend)
        self.c_programs()
        self.add_subdirectory()
        self.missing_component()
        if self.shared:
            self.missing_client_library()


def arguments_of(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--flags", default="")
    parser.add_argument("--debug-flags", default="")
    parser.add_argument("--launcher", default="")
    parser.add_argument("--werror", default="OFF")
    parser.add_argument("linkage", choices=["static", "shared"])
    arguments = parser.parse_args(words)
    arguments.work = arguments.work.resolve()
    arguments.source = arguments.source.resolve()
    return arguments


def main():
    arguments = arguments_of()
    arguments.work.mkdir(parents=True, exist_ok=True)
    try:
        Check(arguments).all()
    except Failed as failed:
        sys.exit(f"FAILED: {failed}")


if __name__ == "__main__":
    main()
