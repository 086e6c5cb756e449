"""The same work on many data sets, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from deeptobit.experiments.reproduce._context import Context

Item = TypeVar("Item")
Result = TypeVar("Result")


def over_repeats(
    work: Callable[[Item], Result], items: Sequence[Item], context: Context, label: str
) -> list[Result]:
    """Results of ``work`` in the order of ``items``; each runs on one BLAS thread.

    Examples
    --------
    >>> over_repeats(abs, [-1, 2], Context(), "absolute values")
    [1, 2]
    """
    jobs = (delayed(_on_one_thread)(work, item) for item in items)
    results: list[Result] = []
    for result in Parallel(n_jobs=context.n_jobs, return_as="generator")(jobs):
        results.append(result)
        context.progress(len(results), len(items), label)
    return results


def mean_and_sd(values: ArrayLike, digits: int = 4) -> str:
    """Mean and standard deviation over repeats, as the paper prints them.

    Examples
    --------
    >>> mean_and_sd([0.1, 0.3], 2), mean_and_sd([1.0])
    ('0.20 (0.14)', '1.0000')
    """
    array = np.asarray(values, dtype=np.float64)
    mean = f"{array.mean():.{digits}f}"
    return mean if array.size < 2 else f"{mean} ({array.std(ddof=1):.{digits}f})"


def _on_one_thread(work: Callable[[Item], Result], item: Item) -> Result:
    with threadpool_limits(1):
        return work(item)
