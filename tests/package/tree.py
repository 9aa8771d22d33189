"""What the tree says about itself, for the tests of what packages it: no recipe may say something else."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def version():
    return re.search(r"project\(Holdfast VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


def backends():
    """{backend: the pkg-config modules of what it is built on}, of those whose client libraries have such modules: all but
    memory, which needs none, and zookeeper."""
    text = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "backends").rglob("CMakeLists.txt"))
    return {name: words.split() for name, words in re.findall(r"holdfast_backend_needs\((\w+) \S+ ([\w -]+)\)", text)}


def boost():
    """The libraries of Boost that an installed library is built on, as their folders are called."""
    folders = [ROOT / "core/include", ROOT / "core/src", ROOT / "backends"]
    texts = "".join(p.read_text(encoding="utf-8") for f in folders for p in f.rglob("*.?pp"))
    return {name.removesuffix("_container") for name in re.findall(r"#include <boost/(\w+)", texts)}


def end(mistakes, tried):
    print(*mistakes, f"{tried} tried, {len(mistakes)} mistakes", sep="\n")
    sys.exit(1 if mistakes else 0)
