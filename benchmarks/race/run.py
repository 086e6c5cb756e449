"""All methods on all splits of all data, each fit in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from threadpoolctl import threadpool_limits

from benchmarks.race.fit import OWN, Cost, Result, fit_and_measure, measure_points
from benchmarks.race.peer import Peer
from benchmarks.race.process import Ended, run_in_children
from benchmarks.race.store import DONE, FAILED, OVER, Key, Store
from benchmarks.race.trial import Trial, draw_trials
from deeptobit.app.study import EvaluationData

if TYPE_CHECKING:
    import pandas as pd


class Heat(NamedTuple):
    """One method on one split."""

    key: Key
    peer: Peer
    trial: Trial

    def __str__(self) -> str:
        """For people who wait."""
        return f"{self.trial.data}, split {self.trial.split + 1}, {self.peer.name}"


def list_heats(
    data: Sequence[EvaluationData], methods: Mapping[str, Peer], n_splits: int
) -> list[Heat]:
    """All there is to do: the first split of everything, then the second, and so on."""
    heats = [
        Heat(Key(name_of(one), method, trial.split), peer, trial)
        for one in data
        for trial in draw_trials(one, n_splits)
        for method, peer in methods.items()
    ]
    return sorted(heats, key=lambda heat: heat.trial.split)


def name_of(data: EvaluationData) -> str:
    """The name of data with a digest of their numbers: other numbers are other data."""
    return f"{data.name}-{data.fingerprint()[:8]}"


def run(
    heats: Sequence[Heat],
    store: Store,
    *,
    at_once: int,
    limit: float,
    tell: Callable[[str], None],
) -> None:
    """Fit what is not fitted yet, and keep everything that happens.

    A method that was over the limit is not tried again on the same data; the store then has
    nothing of the later splits.
    """
    left = [heat for heat in heats if not store.has(heat.key, limit)]
    if len(left) < len(heats):
        tell(f"{len(heats) - len(left)} of {len(heats)} fits were done before and are kept")
    with threadpool_limits(1):
        for peer in {heat.key.method: heat.peer for heat in left}.values():
            peer.prepare()
    over = {heat.key[:2] for heat in heats if store.was_over(heat.key, limit)}
    hopeful = (heat for heat in left if heat.key[:2] not in over)
    started = perf_counter()
    ended_heats = run_in_children(hopeful, _work, at_once=at_once, limit=limit)
    for count, (heat, ended) in enumerate(ended_heats, start=1):
        rows = _rows(heat, ended, limit)
        if not ended.failure and ended.result.points is not None:
            store.write_points(heat.key, ended.result.points)
        store.write(heat.key, rows)
        if ended.timed_out:
            over.add(heat.key[:2])
        minutes = (perf_counter() - started) / count * (len(left) - count) / 60.0
        done = f"[{count}/{len(left)}, about {minutes:.0f} min left]"
        cost = "{seconds:.1f} s, {megabytes:.0f} MB".format(**rows.iloc[0])
        tell(f"{done} {heat}: {first_line(ended.failure) or cost}")


def measure_again(heats: Sequence[Heat], store: Store, *, tell: Callable[[str], None]) -> None:
    """Put the error models of today on predictions that were made before.

    Fits whose predictions were not kept have rows of an older error model: these are forgotten, so
    that :func:`run` fits them again.
    """
    outdated = [heat for heat in heats if _lacks_points(heat.key, store)]
    for heat in outdated:
        store.path(heat.key).unlink()
    if outdated:
        tell(f"{len(outdated)} fits without kept predictions are forgotten, to be fitted again")
    found = [(heat, points) for heat in heats if (points := store.read_points(heat.key))]
    tell(f"measuring {len(found)} fits without a distribution of their own again")
    with threadpool_limits(1):
        for heat, points in found:
            old = store.read([heat.key])
            cost = Cost(*(float(old[name].iloc[0]) for name in Cost._fields))
            rows = measure_points(heat.peer, heat.trial, points, cost)
            store.write(heat.key, _done(rows, float(old["limit"].iloc[0])))


def first_line(text: str) -> str:
    """The first line, empty if there is none."""
    return text.partition("\n")[0]


def _lacks_points(key: Key, store: Store) -> bool:
    """Whether a fit is done and has rows of an error model, but not what they were made of."""
    if not store.path(key).exists() or store.read_points(key) is not None:
        return False
    rows = store.read([key])
    return bool((rows["status"] == DONE).all() and (rows["error_model"] != OWN).any())


def _work(heat: Heat) -> Result:
    return fit_and_measure(heat.peer, heat.trial)


def _rows(heat: Heat, ended: Ended, limit: float) -> pd.DataFrame:
    """Results of a fit, or one row that says why there are none."""
    import pandas as pd

    if not ended.failure:
        return _done(ended.result.rows, limit)
    row = {
        "data": heat.trial.data,
        "split": heat.trial.split,
        "name": heat.peer.name,
        "seconds": limit if ended.timed_out else nan,
        "megabytes": nan,
        "status": OVER if ended.timed_out else FAILED,
        "message": ended.failure,
        "limit": limit,
    }
    return pd.DataFrame([row])


def _done(rows: pd.DataFrame, limit: float) -> pd.DataFrame:
    return rows.assign(status=DONE, message="", limit=limit)
