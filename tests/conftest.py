"""What all tests share: the folders of the checkout, and PyTorch where it is installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-snapshots", action="store_true", help="write the files of tests/snapshots anew")


@pytest.fixture
def update_snapshots(request: pytest.FixtureRequest) -> bool:
    """Whether snapshots are to be written anew."""
    return bool(request.config.getoption("--update-snapshots"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The top folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def stdlib() -> Path:
    """The folder of the standard library's sources."""
    return ROOT / "stdlib"


@pytest.fixture(scope="session", autouse=True)
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests never read or write the user's cache folder."""
    os.environ.setdefault("OCN_CACHE_DIR", str(tmp_path_factory.mktemp("ocn-cache")))


@pytest.fixture
def ocn(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command `ocn` with these arguments, which must succeed, and gives what it printed."""

    def run(*arguments: str) -> str:
        from ocannl_lang.cli.main import status_of

        status = status_of(arguments)
        output = capsys.readouterr()
        assert status == 0, output.out + output.err
        return output.out

    return run
