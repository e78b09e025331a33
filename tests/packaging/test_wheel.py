"""The distribution holds what it must, and works from a fresh environment and any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """The folder with the source distribution and the wheel that was built from it."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    build(root, folder, "sdist")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "source", filter="data") if sys.version_info >= (3, 12) else archive.extractall(
            folder / "source"
        )
    build(next((folder / "source").iterdir()), folder, "wheel")
    return folder


def build(source: Path, folder: Path, target: str) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder), "-t", target]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_the_packages_the_grammar_and_the_standard_library(built: Path, root: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    assert {"ocannl_lang/__init__.py", "ocn_lsp/__init__.py", "ocn_runtime/__init__.py"} <= names
    assert "ocannl_lang/_data/grammar/ocn.lark" in names
    modules = {f"ocannl_lang/_data/stdlib/{p.name}" for p in (root / "stdlib").glob("*.ocn")}
    assert modules and modules <= names
    pages = {p.relative_to(root).as_posix() for p in (root / "ocannl_lang/diagnostics/explain").glob("*.md")}
    assert pages <= names
    top = {n.split("/")[0] for n in names if ".dist-info" not in n}
    assert top == {"ocannl_lang", "ocn_lsp", "ocn_runtime"}


PROGRAM = """
from nn import dense
let net = dense[2]
routine f(x: f32[n | 3]): return net(x)
main(): print("works")
"""


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python whose environment has the wheel only, and sees this environment's packages for the dependencies."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    import numpy

    (site / "dependencies.pth").write_text(str(Path(numpy.__file__).parents[1]), encoding="utf-8")
    return python


def run(python: Path, *arguments: str, cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(python), *arguments], cwd=cwd, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_installed_wheel_runs_a_program_from_another_folder(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "program.ocn").write_text(PROGRAM, encoding="utf-8")
    where = run(installed, "-c", "import ocannl_lang; print(ocannl_lang.__file__)", cwd=tmp_path)
    assert "site-packages" in where
    assert "works" in run(installed, "-m", "ocannl_lang", "run", "program.ocn", cwd=tmp_path)
    script = "import ocannl_lang as o, numpy as n; print(o.load('program.ocn').f(n.ones((4, 3), n.float32)).shape)"
    assert "(4, 2)" in run(installed, "-c", script, cwd=tmp_path)


def test_the_runtime_needs_no_compiler(installed: Path, tmp_path: Path) -> None:
    script = (
        "import sys, pkgutil, importlib, ocn_runtime\n"
        "for m in pkgutil.walk_packages(ocn_runtime.__path__, 'ocn_runtime.'): importlib.import_module(m.name)\n"
        "print(sorted(n for n in ('lark', 'llvmlite', 'ocannl_lang') if n in sys.modules))\n"
    )
    assert run(installed, "-c", script, cwd=tmp_path).strip() == "[]"


def test_importing_the_compiler_is_light(installed: Path, tmp_path: Path) -> None:
    script = "import sys, ocannl_lang; print(sorted(n for n in ('lark', 'llvmlite', 'torch') if n in sys.modules))"
    assert run(installed, "-c", script, cwd=tmp_path).strip() == "[]"
