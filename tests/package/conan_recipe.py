#!/usr/bin/env python3
"""The Conan recipe fits the tree: conanfile.py is loaded, and its steps are done, on stand-ins for Conan's classes, written after
Conan 2's reference; what it tells users about the package is what CMake has installed. Nothing is compiled.

conan_recipe.py WORK    every mistake on a line of its own, exit 1 when there is one
conan_recipe.py WORK --selftest    each rule is broken once in a copy, and has to be noticed
"""
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import types

import hollow
import tree

RECIPE = tree.ROOT / "cmake/packages/conan/conanfile.py"
# Where Conan calls something else than its pkg-config module is called.
PACKAGE_OF = {"libmariadb": "mariadb-connector-c", "protobuf-lite": "protobuf"}


class Component:
    """What a recipe may say about a component, or about the package."""

    def __init__(self):
        self.libs, self.requires, self.system_libs, self.exelinkflags, self.sharedlinkflags = [], [], [], [], []
        self.properties = {}
        self.components = collections.defaultdict(Component)

    def set_property(self, name, value):
        if name not in ("cmake_file_name", "cmake_target_name", "pkg_config_name"):
            raise AttributeError(f"Conan has no property {name}")
        self.properties[name] = value


class ConanFile:
    def __init__(self, folder, chosen, shared):
        unknown = {name for name in self.default_options if ":" not in name} ^ self.options.keys()
        if unknown:
            raise AttributeError(f"without default, or no option: {unknown}")
        defaults = {name: value for name, value in self.default_options.items() if ":" not in name}
        given = {name: name in chosen for name in self.options if name not in ("shared", "fPIC")}
        self.options = types.SimpleNamespace(**defaults | given | {"shared": shared})
        self.folders, self.cpp_info = types.SimpleNamespace(), Component()
        self.required, self.tools = {}, []
        self.recipe_folder = str(self.recipe.parent)
        self.export_sources_folder = self.source_folder = str(folder / "source")
        self.build_folder, self.package_folder = str(folder / "build"), str(folder / "package")

    def requires(self, reference, visible=True, transitive_headers=False):
        self.required[reference.split("/")[0]] = (reference, visible, transitive_headers)

    def tool_requires(self, reference):
        self.tools.append(reference)


class CMakeToolchain:
    variables = {}

    def __init__(self, conanfile):
        self.shared, self.cache_variables = conanfile.options.shared, {}

    def generate(self):
        CMakeToolchain.variables = {**self.cache_variables, "BUILD_SHARED_LIBS": "ON" if self.shared else "OFF"}


class Generator:
    def __init__(self, conanfile):
        pass

    def generate(self):
        pass


class CMake:
    def __init__(self, conanfile):
        self.source, self.build_folder, self.prefix = conanfile.source_folder, conanfile.build_folder, conanfile.package_folder

    def configure(self):
        options = {**CMakeToolchain.variables, "CMAKE_BUILD_TYPE": "Release", "CMAKE_INSTALL_LIBDIR": "lib",
                   "CMAKE_INSTALL_PREFIX": self.prefix, "CMAKE_SKIP_RPATH": "ON"}  # an empty library has none to change
        done = subprocess.run(["cmake", "-G", "Ninja", "-S", self.source, "-B", self.build_folder, *(f"-D{n}={v}" for n, v in options.items())],
                              check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if "not used by the project" in done.stdout:
            raise AttributeError(done.stdout)

    def build(self):
        pass

    def install(self):
        hollow.install(pathlib.Path(self.build_folder))


def copy(_conanfile, pattern, src, dst):
    """A file, or all in a folder."""
    name, src, dst = pattern.removesuffix("/*"), pathlib.Path(src), pathlib.Path(dst)
    if (src / name).is_dir() != pattern.endswith("/*"):
        raise OSError(f"copy: there is no {pattern} in {src}")
    dst.mkdir(parents=True, exist_ok=True)
    (dst / name).symlink_to((src / name).resolve())


def rmdir(conanfile, path):
    """What is removed from the package stays beside it, to be compared."""
    shutil.move(path, pathlib.Path(conanfile.package_folder).parent / "removed" / pathlib.Path(path).name)


def modules():
    contents = {"conan": {"ConanFile": ConanFile}, "conan.tools": {},
                "conan.tools.build": {"check_min_cppstd": lambda conanfile, least: setattr(conanfile, "standard", least)},
                "conan.tools.cmake": {"CMake": CMake, "CMakeDeps": Generator, "CMakeToolchain": CMakeToolchain, "cmake_layout": lambda _: None},
                "conan.tools.files": {"copy": copy, "load": lambda _, path: pathlib.Path(path).read_text(encoding="utf-8"),
                                      "rmdir": rmdir},
                "conan.tools.gnu": {"PkgConfigDeps": Generator}}
    for name, content in contents.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__dict__.update(content)


def performed(recipe, folder, chosen, shared):
    """The recipe after all of its steps."""
    modules()
    space = {"__name__": "conanfile", "__file__": str(recipe)}
    exec(compile(recipe.read_text(encoding="utf-8"), recipe, "exec"), space)  # pylint: disable=exec-used
    kind = next(v for v in space.values() if isinstance(v, type) and issubclass(v, ConanFile) and v is not ConanFile)
    kind.recipe = RECIPE  # wherever a copy of it is
    it = kind(folder, chosen, shared)
    it.set_version()
    (folder / "removed").mkdir(parents=True)
    it.layout()
    it.requirements()
    it.validate()
    it.build_requirements()
    it.export_sources()
    it.generate()
    it.build()
    it.package()
    it.package_info()
    return it


def of_recipe(recipe, work, chosen, shared):
    for folder in ("source", "package", "removed"):  # configuring again what was configured is quicker
        shutil.rmtree(work / folder, ignore_errors=True)
    try:
        it = performed(recipe, work, chosen, shared)
    except (AttributeError, NameError, OSError, TypeError, subprocess.CalledProcessError) as error:
        yield f"conanfile.py with {', '.join(chosen) or 'no option'}: {error!r} {getattr(error, 'stdout', '') or ''}"
        return
    backends = {b: {PACKAGE_OF.get(m, m) for m in modules} for b, modules in tree.backends().items()}
    if it.standard != 20:
        yield "users need C++20, which validate() does not say"
    if it.version != tree.version():
        yield f"the version is {tree.version()}, not {it.version}"
    wanted = {p for b in chosen if b in backends for p in backends[b]} | {"boost", "tomlplusplus"}
    wanted |= {"cli11", "fmt"} if "command" in chosen else set()
    if wanted != it.required.keys():
        yield f"with {', '.join(chosen)} it needs {', '.join(sorted(wanted))}, not {', '.join(sorted(it.required))}"
    suffix = ".so" if shared else ".a"
    installed = {p.name.removesuffix(suffix).removeprefix("lib") for p in (work / "package/lib").glob(f"*{suffix}")}
    components = it.cpp_info.components
    told = {lib for c in components.values() for lib in c.libs}
    if installed != told:
        yield f"the package has {', '.join(sorted(installed))}, and package_info() {', '.join(sorted(told))}"
    yield from (f"the package has no {name}" for name in ["include/holdfast/lock.hpp", "licenses/LICENSE", *["bin/holdfast"] * ("command" in chosen)]
                if not (work / "package" / name).exists())
    for name in components:
        yield from of_component(it, name, work, backends)


def of_component(it, name, work, backends):
    """A component says what the target of the same name says that CMake has exported."""
    component = it.cpp_info.components[name]
    exported = work / f"removed/cmake/Holdfast/HoldfastTargets-{name}.cmake"
    if component.properties.get("cmake_target_name") != f"Holdfast::{name}" or not exported.exists():
        yield f"{name}: there is no target {component.properties.get('cmake_target_name')}"
        return
    for required in component.requires:
        package = required.split("::")[0]
        if package not in (it.required if "::" in required else it.cpp_info.components):
            yield f"{name} requires {required}, which the recipe does not bring"
    foreign = {r.split("::")[0] for r in component.requires if "::" in r}
    if name in backends and foreign != backends[name]:
        yield f"{name} requires {', '.join(sorted(backends[name]))}"
    options = re.search(r'INTERFACE_LINK_OPTIONS "(.*)"', exported.read_text(encoding="utf-8"))
    keep = "" if not options else options[1].replace("LINKER:", "-Wl,")
    keep = keep.replace(f"\\$<TARGET_FILE:Holdfast::{name}>", str(work / f"package/lib/libholdfast-{name}.so"))
    for flags in (component.exelinkflags, component.sharedlinkflags):
        if ",".join(flags) != keep:
            yield f"{name}: the linker gets '{','.join(flags)}', and from CMake '{keep}'"


# (what is replaced in conanfile.py or backends.json, by what, what has to be said)
BROKEN = [
    ('"libpqxx/', '"pqxx/', "it needs"),
    ('"redlock": [', '"redlocks": [', "HOLDFAST_BACKEND_REDLOCKS"),
    ('"HOLDFAST_BUILD_C"]', '"HOLDFAST_C"]', "not used by the project"),
    (',\n  "zookeeper": null', '', "holdfast-zookeeper"),
    ('f"-Wl,--undefined=holdfast_backend_{name}"', 'f"-Wl,--undefined=holdfast_{name}"', "the linker gets"),
    ('--no-as-needed', '--as-needed', "the linker gets"),
    ('f"Holdfast::{name}"', 'f"holdfast::{name}"', "there is no target"),
    ('"cli", "cmake"', '"cmake"', "cli"),
    ('copy(self, "LICENSE", self.source_folder', 'copy(self, "LICENCE", self.source_folder', "no licenses/LICENSE"),
]


def selftest(work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for old, new, said in BROKEN:
        found = False
        for file in (RECIPE, RECIPE.with_name("backends.json")):
            text = file.read_text(encoding="utf-8")
            found |= old in text
            (work / file.name).write_text(text.replace(old, new, 1), encoding="utf-8")
        chosen, shared = ["postgresql", "redis", "command"], "as-needed" in old
        if "zookeeper" in old:
            shutil.rmtree(work / "run")  # where an earlier one has left it out
        if not found or not any(said in line for line in of_recipe(work / RECIPE.name, work / "run", chosen, shared)):
            yield f"not noticed: {old} -> {new}"


def main():
    work = pathlib.Path(sys.argv[1]).resolve()
    if "--selftest" in sys.argv:
        tree.end(list(selftest(work)), len(BROKEN))
    runs = [([*tree.backends(), "command"], False), (["redis", "sqlite"], True)]
    shutil.rmtree(work, ignore_errors=True)
    tree.end([m for chosen, shared in runs for m in of_recipe(RECIPE, work, chosen, shared)], len(runs))


if __name__ == "__main__":
    main()
