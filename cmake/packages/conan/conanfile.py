"""Conan 2's recipe of the checkout that it stands in; docs/install.md says how to use it."""
import json
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir
from conan.tools.gnu import PkgConfigDeps

# {backend: what it is built on}, from cmake/packages/recipes; None: ConanCenter does not have that.
with open(os.path.join(os.path.dirname(__file__), "backends.json"), encoding="utf-8") as file:
    EVERY = json.load(file)
BACKENDS = {name: references for name, references in EVERY.items() if references is not None}
COMPONENT = {"protobuf": "libprotobuf-lite"}  # of the others, all there is


class Holdfast(ConanFile):
    name = "holdfast"
    license = "BSL-1.0"
    description = "One lock interface over servers of several kinds"
    topics = ("lock", "mutex", "distributed")
    package_type = "library"
    exports = "backends.json"
    settings = "os", "compiler", "build_type", "arch"
    options = {"shared": [True, False], "fPIC": [True, False], "command": [True, False], **{b: [True, False] for b in BACKENDS}}
    default_options = {"shared": False, "fPIC": True, "command": False, **{b: b in ("redis", "sqlite") for b in BACKENDS},
                       "libpq/*:with_openssl": True, "protobuf/*:lite": True}
    implements = ["auto_shared_fpic"]

    @property
    def chosen(self):
        return [b for b in BACKENDS if getattr(self.options, b)]

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, "../../../CMakeLists.txt"))
        self.version = re.search(r"project\(Holdfast VERSION ([\d.]+)", text)[1]

    def export_sources(self):
        tree = os.path.join(self.recipe_folder, "../../..")
        copy(self, "CMakeLists.txt", tree, self.export_sources_folder)
        copy(self, "LICENSE", tree, self.export_sources_folder)
        copy(self, "CHANGELOG.md", tree, self.export_sources_folder)
        for folder in ("backends", "cli", "cmake", "core"):
            copy(self, f"{folder}/*", tree, self.export_sources_folder)

    def requirements(self):
        # Inline functions of the headers use Boost. The rest is for who links a static library; toml++ is compiled in.
        self.requires("boost/[>=1.81 <2]", transitive_headers=True)
        self.requires("tomlplusplus/[>=3.3 <4]", visible=False)
        for reference in sorted({r for b in self.chosen for r in BACKENDS[b]}):
            self.requires(reference)
        if self.options.command:
            self.requires("cli11/[>=2.3 <3]", visible=False)
            self.requires("fmt/[>=9 <12]", visible=False)

    def validate(self):
        check_min_cppstd(self, 20)  # also for its users

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")
        self.tool_requires("pkgconf/[>=2 <3]")
        if self.options.etcd:
            self.tool_requires("protobuf/<host_version>")

    def layout(self):
        self.folders.root = "../../.."
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for backend in EVERY:
            toolchain.cache_variables[f"HOLDFAST_BACKEND_{backend.upper()}"] = "ON" if backend in self.chosen else "OFF"
        toolchain.cache_variables["HOLDFAST_BUILD_CLI"] = "ON" if self.options.command else "OFF"
        # It is always a shared library with everything inside.
        toolchain.cache_variables["HOLDFAST_BUILD_C"] = "OFF"
        toolchain.generate()
        CMakeDeps(self).generate()
        PkgConfigDeps(self).generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        # Users have what the generators of Conan make of package_info().
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "Holdfast")
        core = self.cpp_info.components["core"]
        core.set_property("cmake_target_name", "Holdfast::core")
        core.set_property("pkg_config_name", "holdfast")
        core.libs = ["holdfast"]
        core.requires = ["boost::headers", "boost::url"]
        core.system_libs = ["pthread"]
        for name in ["memory", *self.chosen]:
            backend = self.cpp_info.components[name]
            backend.set_property("cmake_target_name", f"Holdfast::{name}")
            backend.set_property("pkg_config_name", f"holdfast-{name}")
            backend.libs = [f"holdfast-{name}"]
            packages = [reference.split("/")[0] for reference in BACKENDS.get(name, [])]
            backend.requires = ["core", *(f"{package}::{COMPONENT.get(package, package)}" for package in packages)]
            # No object of the program refers to the backend, which registers itself, so a linker would drop it.
            keep = f"-Wl,--undefined=holdfast_backend_{name}"
            if self.options.shared:
                library = os.path.join(self.package_folder, "lib", f"libholdfast-{name}.so")
                keep = f"-Wl,--push-state,--no-as-needed,{library},--pop-state"
            backend.exelinkflags = [keep]
            backend.sharedlinkflags = [keep]
        every = self.cpp_info.components["all"]
        every.set_property("cmake_target_name", "Holdfast::all")
        every.set_property("pkg_config_name", "holdfast-all")
        every.libs = []
        every.requires = ["memory", *self.chosen]
