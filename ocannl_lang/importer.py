"""The import hook: `import model` finds `model.ocn`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType


def install_finder(load: Callable[[Path], ModuleType]) -> None:
    """Appends the finder to `sys.meta_path`, in the place of an earlier one."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, OcnFinder)]
    sys.meta_path.append(OcnFinder(load))


@dataclass(frozen=True, slots=True)
class OcnFinder(MetaPathFinder):
    """Looks for `name.ocn` in the folders of `sys.path`, for `a.b` in the folders of the package `a`."""

    load: Callable[[Path], ModuleType]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del target
        name = fullname.rpartition(".")[2]
        for folder in sys.path if path is None else path:
            file = Path(folder or ".", f"{name}.ocn")
            if file.is_file():
                return spec_from_file_location(fullname, file, loader=OcnLoader(self.load, file))
        return None


@dataclass(frozen=True, slots=True)
class OcnLoader(Loader):
    """Loads one file; the module that `load` gives is the module that is imported."""

    load: Callable[[Path], ModuleType]
    file: Path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = self.load(self.file)
        module.__name__ = spec.name
        return module

    def exec_module(self, module: ModuleType) -> None:
        del module
