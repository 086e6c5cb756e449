"""Time the working tree against another revision: ``python -m benchmarks.compare [--against REV]``.

Both run the same work (``workloads.py``), alternately and in processes of their own with one
thread, so that what else the machine does falls on both. Without ``--against``, the other revision
is the last tag.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.workloads import NAMES

ROOT = Path(__file__).parents[1]
SCRIPT = Path(__file__).with_name("workloads.py")
ROUNDS = 5
_THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM")
_NO_TAG = (
    "there is no tag to compare with; name a revision, as in make bench-compare AGAINST=main~1"
)


@dataclass(frozen=True)
class Timing:
    """Seconds of one piece of work, by round; empty where a revision cannot do it.

    Examples
    --------
    >>> timing = Timing("tobit", (2.0, 2.2, 2.0), (1.0, 1.1, 1.2))
    >>> timing.ratio, timing.spread
    (0.5, (0.5, 0.6))
    """

    name: str
    before: tuple[float, ...]
    now: tuple[float, ...]

    @property
    def known(self) -> bool:
        """Whether both revisions did it."""
        return bool(self.before and self.now)

    @property
    def ratios(self) -> list[float]:
        """Seconds of the working tree over those of the other revision, round by round."""
        return [now / before for before, now in zip(self.before, self.now, strict=True)]

    @property
    def ratio(self) -> float:
        """The median; below 1 the working tree is faster."""
        return median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The smallest and the largest; if they have 1 between them, nothing is to be seen."""
        return min(self.ratios), max(self.ratios)


def last_tag(root: Path) -> str | None:
    """The tag before the working tree, if there is one."""
    found = subprocess.run(
        ["git", "describe", "--tags", "--abbrev=0"], cwd=root, capture_output=True, text=True
    )
    return found.stdout.strip() if found.returncode == 0 else None


@contextmanager
def checked_out(root: Path, revision: str) -> Iterator[Path]:
    """A revision in a folder of its own, which is gone afterwards."""
    with TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(root), "worktree"]
        _run([*git, "add", "--quiet", "--detach", str(tree), revision])
        try:
            yield tree
        finally:
            _run([*git, "remove", "--force", str(tree)])


def compare(
    names: Sequence[str], before: Path, now: Path, rounds: int = ROUNDS, script: Path = SCRIPT
) -> Iterator[Timing]:
    """Time both trees, one after the other in every round."""
    for name in names:
        seconds: dict[Path, list[float]] = {before: [], now: []}
        for tree in (before, now):  # what is compiled is kept in files
            _seconds(script, name, tree)
        for _ in range(rounds):
            for tree, found in seconds.items():
                found += _seconds(script, name, tree)
        yield Timing(name, tuple(seconds[before]), tuple(seconds[now]))


def _seconds(script: Path, name: str, tree: Path) -> list[float]:
    """One number, or none where the work cannot be done."""
    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in _THREADS}
    environment["PYTHONPATH"] = str(tree / "src")
    found = subprocess.run(
        [sys.executable, str(script), name], env=environment, capture_output=True, text=True
    )
    return [float(found.stdout)] if found.returncode == 0 else []


def table(timings: Sequence[Timing], revision: str) -> str:
    """One line for every piece of work.

    Examples
    --------
    >>> print(table([Timing("tobit", (2.0,), (1.0,)), Timing("new", (), (1.0,))], "v1"))
    work               v1        now    ratio  spread
    tobit          2.000 s    1.000 s    0.50  0.50 to 0.50
    new                  –    1.000 s       –  v1 cannot do it
    """
    lines = [f"{'work':10}{revision:>11}{'now':>11}{'ratio':>9}  spread"]
    for timing in timings:
        shown = [f"{median(side):.3f} s" if side else "–" for side in (timing.before, timing.now)]
        line = f"{timing.name:10}{shown[0]:>11}{shown[1]:>11}"
        if timing.known:
            low, high = timing.spread
            lines.append(f"{line}{timing.ratio:>8.2f}  {low:.2f} to {high:.2f}")
        else:
            lines.append(f"{line}{'–':>8}  {revision if timing.now else 'now'} cannot do it")
    return "\n".join(lines)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip().splitlines()[-1])


def main(arguments: Sequence[str], root: Path = ROOT, script: Path = SCRIPT) -> int:
    """Print the table; 2 if there is nothing to compare with."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare")
    parser.add_argument("names", nargs="*", metavar="work", help=f"some of {', '.join(NAMES)}")
    parser.add_argument("--against", default="", help="a revision; the last tag by default")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args(arguments)
    revision = given.against or last_tag(root)
    if revision is None:
        print(_NO_TAG, file=sys.stderr)
        return 2
    try:
        with checked_out(root, revision) as tree:
            timings = list(compare(given.names or NAMES, tree, root, given.rounds, script))
    except ValueError as error:
        print(f"git cannot check {revision} out: {error}", file=sys.stderr)
        return 2
    print(table(timings, revision))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
