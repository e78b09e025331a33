"""The nearest known name to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` is most likely a misspelling of.

    The first of equally near ones; None if none is near.
    """
    limit = _limit(name)
    best: tuple[int, bool, str] | None = None
    for candidate in candidates:
        if candidate == name or abs(len(candidate) - len(name)) > limit:
            continue
        same = candidate.lower().replace("_", "") == name.lower().replace("_", "")
        far = 0 if same else distance(name, candidate, limit)
        if not same and (far > limit or far >= len(candidate)):
            continue
        key = (far, candidate[:1].lower() != name[:1].lower())
        if best is None or key < best[:2]:
            best = (*key, candidate)
    return best[2] if best else None


def _limit(name: str) -> int:
    if len(name) <= 2:
        return 0
    return 1 if len(name) <= 4 else 2 if len(name) <= 8 else 3


def distance(a: str, b: str, limit: int = 1_000) -> int:
    """Insertions, deletions, replacements and exchanges of neighbours that lead from `a` to `b`; `limit + 1` if more.

    The optimal string alignment distance: Damerau, "A technique for computer detection and correction of spelling
    errors", 1964, without edits inside an exchanged pair.
    """
    before_last: list[int] = []
    last = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        row = [i]
        for j, cb in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (ca != cb))
            if i > 1 and j > 1 and ca == b[j - 2] and a[i - 2] == cb:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before_last, last = last, row
    return last[-1]
