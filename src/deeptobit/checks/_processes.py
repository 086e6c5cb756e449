"""Where and how parallel a model is fitted must not show in it."""

from typing import Any

from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from deeptobit.checks._answers import Answers, ask, assert_same
from deeptobit.checks._problem import Problem, fitted, make_problem


def check_same_seed_across_processes(estimator: Any) -> None:
    """The same seed gives the same model in another process with another number of threads.

    Here on one thread, there on two: of OpenMP, of BLAS and of Numba. The other process has other
    hashes of strings, too.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_same_seed_across_processes(TobitRegressor())
    """
    problem = make_problem(estimator, missing=0.1)
    with threadpool_limits(1):
        here = _learn_and_ask(estimator, problem)
    with parallel_config("loky", inner_max_num_threads=2):
        (there,) = Parallel(n_jobs=2)([delayed(_learn_and_ask)(estimator, problem)])
    assert_same(there, here, "in another process with two threads")


def check_n_jobs_changes_nothing(estimator: Any) -> None:
    """``n_jobs`` is a matter of time alone: 1, 2, or -1, which stands for all cores.

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor
    >>> check_n_jobs_changes_nothing(SubspaceTobitRegressor(rank=2, solver="online"))
    """
    if "n_jobs" not in estimator.get_params():
        return
    problem = make_problem(estimator)
    alone = fitted(clone(estimator).set_params(n_jobs=1), problem)
    for n_jobs in (2, -1):
        together = fitted(clone(estimator).set_params(n_jobs=n_jobs), problem)
        assert_same(ask(together, problem.X), ask(alone, problem.X), f"with n_jobs={n_jobs}")


def _learn_and_ask(estimator: Any, problem: Problem) -> Answers:
    return ask(fitted(estimator, problem), problem.X)
