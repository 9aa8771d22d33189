#!/usr/bin/env python3
"""The vcpkg port fits the tree: its features are the tree's backends, with what these are built on; its portfile.cmake is run,
on stand-ins of vcpkg's functions, and what it installs is found. Nothing is compiled.

vcpkg.py WORK    every mistake on a line of its own, exit 1 when there is one
vcpkg.py WORK --selftest    each rule is broken once in a copy, and has to be noticed
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

import tree

HERE = pathlib.Path(__file__).resolve().parent
PORT = tree.ROOT / "cmake/packages/vcpkg/holdfast"
# Where vcpkg calls something else than its pkg-config module is called.
PORT_OF = {"libnghttp2": "nghttp2", "protobuf-lite": "protobuf"}
COMMAND = {"boost-json", "cli11", "fmt"}
# What vcpkg.json may have, and what it calls things (its reference).
KEYS = {"name", "version-semver", "description", "license", "supports", "dependencies", "default-features", "features"}
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def names(dependencies, host=False):
    return [d if isinstance(d, str) else d["name"] for d in dependencies if (not isinstance(d, str) and d.get("host", False)) == host]


def of_manifest(port):
    manifest = json.loads((port / "vcpkg.json").read_text(encoding="utf-8"))
    features = manifest["features"]
    yield from (f"vcpkg.json: vcpkg knows no '{key}'" for key in sorted(manifest.keys() - KEYS))
    for words in [manifest["dependencies"], *(f["dependencies"] for f in features.values())]:
        yield from (f"vcpkg.json: '{n}' is no name" for n in names(words) + names(words, True) if not NAME.fullmatch(n))
        if names(words) != sorted(set(names(words))):
            yield f"vcpkg.json: {', '.join(names(words))} are not in order"
    wanted = {name: {PORT_OF.get(module, module) for module in modules} for name, modules in tree.backends().items()}
    wanted["tools"] = COMMAND
    yield from (f"vcpkg.json has no feature {name}" for name in sorted(wanted.keys() - features.keys()))
    yield from (f"vcpkg.json: {name} is no backend" for name in sorted(features.keys() - wanted.keys()))
    for name in wanted.keys() & features.keys():
        if set(names(features[name]["dependencies"])) != wanted[name]:
            yield f"vcpkg.json: {name} needs {', '.join(sorted(wanted[name]))}"
    boost = {f"boost-{name.replace('_', '-')}" for name in tree.boost()}
    have = {name for name in names(manifest["dependencies"]) if name.startswith("boost-")}
    if boost != have:
        yield f"vcpkg.json: of Boost the library uses {', '.join(sorted(boost))}"
    made = subprocess.run([PORT.parents[1] / "recipes", "--compare"], check=False, text=True, stdout=subprocess.PIPE)
    yield from made.stdout.splitlines()
    yield from (f"vcpkg.json: the default {name} is no feature" for name in manifest["default-features"] if name not in features)


def of_portfile(port, work, features):
    """Runs it with these features, and configures a user's project with what it has installed."""
    shutil.rmtree(work, ignore_errors=True)
    packages = work / "packages"
    (work / "host/tools/protobuf").mkdir(parents=True)
    values = {"PORT": "holdfast", "FEATURES": ";".join(["core", *features]), "CURRENT_PACKAGES_DIR": packages, "PORTFILE": port / "portfile.cmake",
              "CURRENT_BUILDTREES_DIR": work / "build", "CURRENT_HOST_INSTALLED_DIR": work / "host", "VCPKG_HOST_EXECUTABLE_SUFFIX": ""}
    done = subprocess.run(["cmake", *(f"-D{name}={value}" for name, value in values.items()), "-P", HERE / "vcpkg_functions.cmake"],
                          check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        yield f"portfile.cmake with {', '.join(features) or 'no feature'} failed:\n{done.stdout}"
        return
    built = {p.name.removeprefix("libholdfast-").removesuffix(".a") for p in packages.glob("lib/libholdfast-*.a")}
    if built != {"memory", *features} - {"tools"}:
        yield f"portfile.cmake with {', '.join(features)} built {', '.join(sorted(built))}"
    wanted = ["share/holdfast/HoldfastConfig.cmake", "share/holdfast/copyright", "include/holdfast/lock.hpp"]
    wanted += ["tools/holdfast/holdfast"] * ("tools" in features)
    yield from (f"portfile.cmake installs no {name}" for name in wanted if not (packages / name).exists())
    yield from (f"vcpkg wants no {name}" for name in ("bin", "lib/cmake", "debug/include") if (packages / name).exists())
    used = subprocess.run(["cmake", "-G", "Ninja", "-S", HERE / "consumer", "-B", work / "user", f"-DCMAKE_PREFIX_PATH={packages}",
                           f"-DCONSUMER_BACKENDS={';'.join(sorted(built))}"],
                          check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if used.returncode:
        yield f"what portfile.cmake installs is not found:\n{used.stdout}"


def mistakes(port, work, runs):
    return [*of_manifest(port), *(m for run in runs for m in of_portfile(port, work, run))]


# (file, what is replaced in it, by what, what has to be said)
BROKEN = [
    ("vcpkg.json", '"libpqxx"', '"pqxx"', "postgresql needs libpq, libpqxx"),
    ("vcpkg.json", '"redlock": {', '"redlocks": {', "has no feature redlock"),
    ("vcpkg.json", '"boost-url"', '"boost-uuid"', "of Boost the library uses"),
    ("vcpkg.json", '"license"', '"licence"', "knows no 'licence'"),
    ("portfile.cmake", "sql/*/backend.json", "sql/backend.json", "does nothing with the feature sqlite"),
    ("portfile.cmake", "HOLDFAST_BUILD_C=OFF", "HOLDFAST_C=OFF", "not used by the project"),
    ("portfile.cmake", "CONFIG_PATH lib/cmake/Holdfast", "CONFIG_PATH share/cmake/Holdfast", "no files in"),
    ("portfile.cmake", "        ${left_out}\n", "", "zookeeper"),
    ("portfile.cmake", 'vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")', "", "installs no share/holdfast/copyright"),
]


def selftest(work):
    for name, old, new, said in BROKEN:
        copy = work / "cmake/packages/vcpkg/holdfast"  # as deep as in the tree, from where the port finds it
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(PORT, copy)
        for entry in ("CMakeLists.txt", "LICENSE", "CHANGELOG.md", "core", "backends", "cli"):
            (work / entry).symlink_to(tree.ROOT / entry)
        for entry in (tree.ROOT / "cmake").iterdir():
            if entry.name != "packages":
                (work / "cmake" / entry.name).symlink_to(entry)
        text = (copy / name).read_text(encoding="utf-8")
        (copy / name).write_text(text.replace(old, new, 1), encoding="utf-8")
        runs = [["redis", "sqlite"]] if name == "portfile.cmake" else []
        if old not in text or not any(said in line for line in mistakes(copy, work / "run", runs)):
            yield f"not noticed in {name}: {said}"


def main():
    work = pathlib.Path(sys.argv[1]).resolve()
    if "--selftest" in sys.argv:
        tree.end(list(selftest(work)), len(BROKEN))
    runs = [[], [*tree.backends(), "tools"]]
    tree.end(mistakes(PORT, work, runs), len(runs))


if __name__ == "__main__":
    main()
