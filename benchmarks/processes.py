"""Processes of peers: started in a group of their own, asked over pipes, and gone in the end with all that they started."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent

PATIENCE = 900.0
"""Seconds after which a process that does not answer is given up."""


class PeerFailed(Exception):
    """A peer's process ended, or does not answer; the text is the last thing that it said."""


class PeerProcess:
    """A running `benchmarks.worker`."""

    def __init__(self, request: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the process
        self.begin = time.perf_counter()
        command = ["-m", "benchmarks.worker", json.dumps(request)]
        self._process = python_process(command, environment, stdin=subprocess.PIPE, stderr=self._errors)
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def answer(self) -> dict[str, Any]:
        """The next line it says. Raises `PeerFailed`."""
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise PeerFailed(f"no answer for {PATIENCE:.0f} s") from None
        if not line:
            raise PeerFailed(self._last_words())
        return json.loads(line)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Sends a request and waits for the answer. Raises `PeerFailed`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise PeerFailed(self._last_words()) from None
        return self.answer()

    def close(self) -> None:
        """Ends the process and whatever it started."""
        end_group(self._process)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._errors.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put(b"")

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        self._errors.seek(0)
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        status = f"ended with status {self._process.returncode}"
        return f"{status}: {lines[-1].strip()[:200]}" if lines else status


@contextmanager
def peer_process(request: Mapping[str, Any], environment: Mapping[str, str]) -> Generator[PeerProcess, None, None]:
    """A worker that is gone when the block ends."""
    process = PeerProcess(request, environment)
    try:
        yield process
    finally:
        process.close()


@contextmanager
def busy_processor(cpus: Sequence[int]) -> Generator[None, None, None]:
    """A process that keeps the first of these processors busy; it ends with its parent too."""
    program = (
        "import os, sys\n"
        "if hasattr(os, 'sched_setaffinity') and sys.argv[1:]: os.sched_setaffinity(0, [int(sys.argv[1])])\n"
        "parent = os.getppid()\n"
        "print(flush=True)\n"
        "while os.getppid() == parent:\n"
        "    for _ in range(100000): pass\n"
    )
    process = python_process(["-c", program, *map(str, cpus[:1])], os.environ)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        end_group(process)
        assert process.stdout is not None
        process.stdout.close()


def python_process(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: int | None = None,
    stderr: IO[bytes] | int | None = None,
) -> subprocess.Popen[bytes]:
    """Python in a group of its own: Ctrl-C reaches this program alone, which then ends the group with `end_group`."""
    group: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
    command = [sys.executable, *arguments]
    return subprocess.Popen[bytes](
        command, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, cwd=ROOT, env=dict(environment), **group
    )


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process of `python_process` and its children, at once."""
    if sys.platform == "win32":
        process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def environment(threads: int, cache: Path) -> dict[str, str]:
    """For a process that uses so many threads, and keeps what it compiles in the folder `cache`."""
    libraries = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OCN_NUM_THREADS")
    limits = dict.fromkeys(libraries, str(threads))
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {
        **kept,
        **limits,
        "OCN_CACHE_DIR": str(cache / "ocn"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "JAX_PLATFORMS": "cpu",
    }
