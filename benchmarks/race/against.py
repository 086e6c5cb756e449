"""The default against itself at another revision: ``python -m benchmarks.race.against REVISION``.

Both revisions race alone on the same splits, each with its own code; a stopped race continues.
Ridge regression runs beside them and shows that the splits are the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from benchmarks.compare import ROOT, checked_out
from benchmarks.race.ours import NAME
from benchmarks.report import Number

# Those of the race of 0.1.
DATA = "help,licorice_gargle,nmes1988,cohort,cohort-nonlinear,subspace,subspace-deep,wide"
_RIDGE = "ridge + clipped Gaussian"
_MEASURES = {"centred_anmse": "centred ANMSE", "crps": "CRPS", "log_score": "log score"}
_WORSE = 0.003  # as a share of the value before; of a log score, which may be 0, by difference


def race(tree: Path, out: Path, data: str, splits: int) -> pd.DataFrame:
    """Results of the default and of ridge regression with the code of a tree."""
    command = [sys.executable, "-m", "benchmarks.race", "--methods", f"{NAME},ridge"]
    command += ["--data", data, "--splits", str(splits), "--out", str(out.resolve())]
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    subprocess.run(command, cwd=tree, env=environment)  # exits with 1 where a number is missed
    return pd.read_parquet(out / "results.parquet")


def compare(before: pd.DataFrame, now: pd.DataFrame) -> Iterator[Number]:
    """Measures now over those before, of log scores their difference; means over splits.

    Raises
    ------
    ValueError
        If ridge regression shows that the splits differ.
    """
    old, new = _means(before), _means(now)
    for data in old.index.unique("data"):
        ridge = new.loc[(data, _RIDGE), "centred_anmse"], old.loc[(data, _RIDGE), "centred_anmse"]
        if abs(ridge[0] - ridge[1]) > 0.01 * ridge[1]:
            raise ValueError(f"{data}: the splits differ, ridge regression has {ridge}")
        for measure, words in _MEASURES.items():
            value, was = (float(each.loc[(data, NAME), measure]) for each in (new, old))
            if measure == "log_score":
                yield Number(f"{data}: {words} less that before", value - was, _WORSE, "at most")
            else:
                yield Number(
                    f"{data}: {words} over that before", value / was, 1 + _WORSE, "at most"
                )


def _means(results: pd.DataFrame) -> pd.DataFrame:
    by_split = results.groupby(["data", "name", "split"])[list(_MEASURES)].mean()
    return by_split.groupby(["data", "name"]).mean()


def main(words: Sequence[str]) -> int:
    """Race both, print every comparison; the exit code tells whether all are reached."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.race.against")
    parser.add_argument("revision")
    parser.add_argument("--data", default=DATA, help=DATA)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("race/against"))
    given = parser.parse_args(words)
    with checked_out(ROOT, given.revision) as tree:
        before = race(tree, given.out / given.revision, given.data, given.splits)
    now = race(ROOT, given.out / "now", given.data, given.splits)
    numbers = list(compare(before, now))
    print(*numbers, sep="\n")
    return 0 if all(number.reached for number in numbers) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
