"""The suite itself: each check can fail, and says why."""

from typing import Any

import pytest
from sklearn.base import clone

from deeptobit import SubspaceTobitRegressor, TobitRegressor, checks
from deeptobit.likelihood import Gaussian
from tests.conformance.broken import BROKEN, Clipped, Sound
from tests.conformance.suite import Check, all_checks, check_all

ALL: dict[str, Check] = dict([*all_checks(SubspaceTobitRegressor()), *all_checks(Gaussian())])


@pytest.mark.parametrize(
    ("name", "subject", "message"), BROKEN, ids=[type(subject).__name__ for _, subject, _ in BROKEN]
)
def test_a_broken_promise_is_found(name: str, subject: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        ALL[name](subject)


def test_every_check_has_something_to_find() -> None:
    assert {name for name, _, _ in BROKEN} == set(ALL)


def test_every_check_is_public_and_in_the_suite() -> None:
    public = {name for name in checks.__all__ if name.startswith("check_")} - {"check_all"}
    assert public == set(ALL)
    assert all(getattr(checks, name) is check for name, check in ALL.items())


def test_streams_are_checked_where_there_are_some() -> None:
    names = {name for name, _ in all_checks(TobitRegressor())}
    assert set(ALL) - names - {name for name, _ in all_checks(Gaussian())} == {
        "check_partial_fit_in_pieces",
        "check_pickled_stream_goes_on",
        "check_memory_is_bounded",
    }


def test_all_failures_are_reported_at_once() -> None:
    with pytest.raises(ExceptionGroup, match="3 of 8 checks failed") as caught:
        check_all(Clipped())
    notes = [note for failure in caught.value.exceptions for note in failure.__notes__]
    assert notes == [
        "found by check_noise_tails",
        "found by check_noise_intervals",
        "found by check_noise_moments",
    ]


def test_a_subject_is_neither_fitted_nor_changed() -> None:
    model = Sound(2, n_jobs=None)
    settings = repr(clone(model).get_params())
    for name, check in all_checks(model):
        if name != "check_same_seed_across_processes":  # which gets a copy by pickle
            check(model)
    assert repr(model.get_params()) == settings
    assert not hasattr(model, "coef_")


def test_what_is_neither_estimator_nor_noise_is_named() -> None:
    with pytest.raises(TypeError, match="'gaussian' is neither an estimator, for it has no fit"):
        check_all("gaussian")
