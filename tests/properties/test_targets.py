"""Intervals of outcomes: what holds for all values and all bounds."""

from typing import Any

import numpy as np
from hypothesis import given, settings

from deeptobit import CensoredTargets
from deeptobit.arrays import FloatArray
from deeptobit.targets import task_bounds
from tests.properties.strategies import bounded_values

Bounded = tuple[FloatArray, FloatArray, FloatArray]
OFTEN = settings(max_examples=40, deadline=None)


def targets_of(problem: Bounded) -> CensoredTargets:
    Y, lower, upper = problem
    return CensoredTargets.from_bounds(Y, lower, upper, outside="clip")


@OFTEN
@given(bounded_values())
def test_an_entry_is_of_one_kind_and_keeps_its_value(problem: Bounded) -> None:
    Y, lower, upper = problem
    targets = targets_of(problem)
    kinds = [targets.missing, targets.observed, targets.at_lower, targets.at_upper]
    np.testing.assert_array_equal(np.sum(kinds, axis=0), 1)
    np.testing.assert_array_equal(targets.values, np.clip(Y, lower, upper))
    np.testing.assert_array_equal(targets.missing, np.isnan(Y))
    np.testing.assert_array_equal(targets.at_lower, np.less_equal(Y, lower))
    np.testing.assert_array_equal(targets.at_upper, np.greater_equal(Y, upper))


@OFTEN
@given(bounded_values())
def test_rows_and_tasks_do_not_know_of_each_other(problem: Bounded) -> None:
    Y, lower, upper = problem
    targets = targets_of(problem)
    backwards = targets_of((Y[::-1, ::-1], lower[::-1], upper[::-1]))
    for end in ("low", "high"):
        np.testing.assert_array_equal(getattr(targets[::-1], end)[:, ::-1], getattr(backwards, end))


@OFTEN
@given(bounded_values())
def test_intervals_say_what_bounds_say(problem: Bounded) -> None:
    _, lower, upper = problem
    targets = targets_of(problem)
    again = CensoredTargets.from_intervals(targets.low, targets.high, lower=lower, upper=upper)
    for name in ("low", "high", "lower", "upper", "values"):
        np.testing.assert_array_equal(getattr(again, name), getattr(targets, name))


@OFTEN
@given(bounded_values())
def test_every_way_to_write_bounds_means_the_same(problem: Bounded) -> None:
    _, lower, upper = problem
    names = [f"task {task}" for task in range(len(lower))]
    named = [
        {name: end for name, end in zip(names, side.tolist(), strict=True) if np.isfinite(end)}
        for side in (lower, upper)
    ]
    ways: list[tuple[Any, Any]] = [
        (lower, upper),
        (lower.tolist(), [None if np.isinf(bound) else bound for bound in upper.tolist()]),
        (named[0], named[1]),
    ]
    for low, high in ways:
        found = task_bounds(low, high, names)
        np.testing.assert_array_equal(found, (lower, upper))
