import numpy as np
import pytest
from numpy.testing import assert_array_equal

from deeptobit.app.study import Protocol, draw_splits


@pytest.mark.parametrize("method", ["splits", "folds"])
def test_groups_are_never_shared(method: str) -> None:
    groups = np.random.default_rng(0).choice([f"person {i}" for i in range(15)], 60)
    protocol = Protocol(method=method, repeats=3)  # type: ignore[arg-type]
    splits = draw_splits(60, groups, protocol)
    assert len(splits) == (5 if method == "folds" else 15)
    for split in splits:
        assert not set(groups[split.train]) & set(groups[split.test])
        assert sorted([*split.train, *split.test]) == list(range(60))


def test_folds_hold_out_every_row_once() -> None:
    splits = draw_splits(23, None, Protocol(method="folds", folds=4))
    held_out = np.concatenate([split.test for split in splits])
    assert sorted(held_out) == list(range(23))
    assert [split.repeat for split in splits] == [0, 1, 2, 3]


def test_the_seed_is_all_that_is_random() -> None:
    first, again, other = (draw_splits(50, None, Protocol(seed=seed)) for seed in (1, 1, 2))
    for one, two in zip(first, again, strict=True):
        assert_array_equal(one.train, two.train)
    assert any(set(one.train) != set(two.train) for one, two in zip(first, other, strict=True))
    assert len({split.key for split in first}) == len(first) == 50


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train_shares": (0.5, 1.0)}, "between 0 and 1"),
        ({"train_shares": ()}, "between 0 and 1"),
        ({"train_shares": (float("nan"),)}, "between 0 and 1"),
        ({"train_shares": (0.5, 0.5)}, "train shares must differ; got"),
        ({"repeats": 0}, "repeats must be at least 1"),
    ],
)
def test_what_no_split_can_follow(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Protocol(**changes)  # type: ignore[arg-type]


def test_too_few_rows_or_groups() -> None:
    with pytest.raises(ValueError, match="2 groups are too few to train on 40%"):
        draw_splits(10, np.repeat(["a", "b"], 5), Protocol())
    with pytest.raises(ValueError, match="5 folds need as many groups"):
        draw_splits(10, np.repeat(["a", "b"], 5), Protocol(method="folds"))
