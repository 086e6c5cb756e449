"""Thousands of generated problems: ``python -m tests.properties.many --problems 20000 --seed 1``.

Every problem must be refused in a sentence or give numbers that can be used, in time. Whatever does
not is printed as a recipe, to be kept in ``found.py``, and makes the exit code 1.
"""

from __future__ import annotations

import argparse
import faulthandler
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from hypothesis import HealthCheck, Phase, given, seed, settings
from joblib import Parallel, delayed

from tests.properties.problems import Recipe
from tests.properties.properties import examine
from tests.properties.strategies import recipes
from tests.properties.tally import Tally, describe, show, without_details

# Shares of the models in hundredths; the automatic model fits a dozen.
SHARES = {"tobit": 40, "subspace": 40, "network": 18, "auto": 2}
_SECONDS_BETWEEN = 30.0


class HangError(Exception):
    """A problem took longer than it may."""


def run(model: str, n_problems: int, first_seed: int, limit: float) -> Tally:
    """Examine generated problems of one model, each within a limit of seconds."""
    tally, started = Tally(), time.monotonic()
    shown = started

    @seed(first_seed)
    @settings(
        max_examples=n_problems,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(recipe=recipes((model,)))
    def try_all(recipe: Recipe) -> None:
        nonlocal shown
        _try_one(recipe, limit, tally)
        if time.monotonic() - shown > _SECONDS_BETWEEN:
            shown = time.monotonic()
            rate = tally.n_problems / (shown - started)
            faults = f"{len(tally.faults)} kind(s) of fault"
            print(f"{model}: {tally.n_problems:,} problems, {rate:.0f}/s, {faults}", flush=True)

    try_all()
    return tally


def _try_one(recipe: Recipe, limit: float, tally: Tally) -> None:
    started = time.monotonic()
    try:
        with time_limit(limit):
            sentence = examine(recipe)
    except Exception as error:
        if describe(error) not in tally.faults:
            print(f"{describe(error)}\n  {recipe}", flush=True)
        tally.add_fault(describe(error), recipe)
    else:
        if sentence is None:
            tally.fitted[recipe.model] += 1
        else:
            tally.refused[without_details(sentence)] += 1
    tally.slowest = max(tally.slowest, time.monotonic() - started)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer; compiled code that never returns ends the whole process."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise HangError(f"not done after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    faulthandler.dump_traceback_later(4.0 * seconds, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def main() -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with its own seeds")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one problem")
    chosen = parser.parse_args()
    print(f"{chosen.problems:,} problems, seed {chosen.seed}, {chosen.jobs} job(s)", flush=True)
    started = time.monotonic()
    parts = [
        (model, -(-chosen.problems * share // (100 * chosen.jobs)), chosen.seed + job)
        for model, share in SHARES.items()
        for job in range(chosen.jobs)
    ]
    total = Tally()
    for part in Parallel(n_jobs=chosen.jobs)(delayed(run)(*part, chosen.limit) for part in parts):
        total.add(part)
    show(total, time.monotonic() - started)
    return 1 if total.faults else 0


if __name__ == "__main__":
    from tests.properties import many  # by a name that other processes know it by

    sys.exit(many.main())
