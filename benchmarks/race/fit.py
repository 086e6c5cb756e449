"""One method on one trial: fitted by the clock, then measured."""

from __future__ import annotations

import os
import resource
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from threadpoolctl import threadpool_limits

from benchmarks.race.error_models import ERROR_MODELS
from benchmarks.race.forecast import Forecast
from benchmarks.race.measures import measure
from benchmarks.race.peer import Fitted, Peer
from benchmarks.race.trial import Trial
from deeptobit.arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd

OWN = "own"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_MEGABYTE = 2**20 if sys.platform == "darwin" else 2**10  # in the units of ru_maxrss


class Cost(NamedTuple):
    """Seconds of processor time of a fit, and megabytes beyond those of the process before it."""

    seconds: float
    megabytes: float


class Points(NamedTuple):
    """Predictions of a method without a distribution: of held-out training rows, of test rows."""

    held_out: FloatArray
    test: FloatArray


class Result(NamedTuple):
    """Measures of one fit, and what they were made of if error models were put on top."""

    rows: pd.DataFrame
    points: Points | None


def fit_and_measure(peer: Peer, trial: Trial) -> Result:
    """Rows of results, one for every outcome and error model, of one fit with one thread.

    To be called in a process of its own: peak memory never falls again.
    """
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that does not converge shows in its measures
        for package in peer.needs:
            import_module(package)
        fitted, cost = _fit(peer, trial)
        forecast = fitted.predict(trial.X)
        if forecast.latent is not None:
            return Result(_rows(peer, trial, {OWN: forecast}, cost), None)
        if fitted.held_out is None:
            raise ValueError("a method without a distribution must have predictions held out")
        points = Points(fitted.held_out, forecast.point)
        return Result(measure_points(peer, trial, points, cost), points)


def measure_points(peer: Peer, trial: Trial, points: Points, cost: Cost) -> pd.DataFrame:
    """Rows of results of predictions that were made before, with every error model."""
    forecasts = {
        name: error_model(trial.problem, *points) for name, error_model in ERROR_MODELS.items()
    }
    return _rows(peer, trial, forecasts, cost)


def _rows(peer: Peer, trial: Trial, forecasts: dict[str, Forecast], cost: Cost) -> pd.DataFrame:
    import pandas as pd

    frames = [
        pd.DataFrame(
            {
                "data": trial.data,
                "split": trial.split,
                "name": _name(peer, error_model),
                "error_model": error_model,
                "target": trial.names,
                "n_train": len(trial.problem.X),
                "n_test": len(trial.X),
                "n_features": trial.X.shape[1],
                **measure(forecast, trial),
                **cost._asdict(),
            }
        )
        for error_model, forecast in forecasts.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _fit(peer: Peer, trial: Trial) -> tuple[Fitted, Cost]:
    before, started = _peak(resource.RUSAGE_SELF), _seconds()
    fitted = peer.fit(trial.problem)
    # Another program that did the work (R) counts as a whole.
    used = max(_peak(resource.RUSAGE_SELF) - before, _peak(resource.RUSAGE_CHILDREN))
    return fitted, Cost(_seconds() - started, used)


def _peak(whose: int) -> float:
    return resource.getrusage(whose).ru_maxrss / _MEGABYTE


def _seconds() -> float:
    """Processor time of this process and of those it has started, which no other work disturbs."""
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def _name(peer: Peer, error_model: str) -> str:
    return peer.name if error_model == OWN else f"{peer.name} + {error_model}"
