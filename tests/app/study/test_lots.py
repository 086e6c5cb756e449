import numpy as np
import pytest

from deeptobit.app.study.chunks import SmallestLots, draw_lots


def test_lots_are_uniform_and_do_not_follow_their_numbers() -> None:
    lots = draw_lots(np.arange(100_000), seed=3)
    counts, _ = np.histogram(lots, bins=50, range=(0.0, 1.0))
    assert np.square(counts - 2000).sum() / 2000 < 95  # chi square of 49 degrees at 0.9999
    assert abs(np.corrcoef(lots[:-1], lots[1:])[0, 1]) < 0.015
    other = draw_lots(np.arange(100_000), seed=4)
    assert abs(np.corrcoef(lots, other)[0, 1]) < 0.015


def test_a_label_has_the_same_lot_wherever_it_stands() -> None:
    labels = np.array(["007", "7", "Ann", "007"], dtype=object)
    lots = draw_lots(labels, seed=0)
    assert lots[0] == lots[3]
    assert len(set(lots.tolist())) == 3
    np.testing.assert_array_equal(draw_lots(labels[1:], seed=0), lots[1:])


@pytest.mark.parametrize("n_groups", [1, 7, 60_000, 300_000])
def test_groups_are_counted_in_bounded_memory(n_groups: int) -> None:
    lots = draw_lots(np.arange(n_groups), seed=0)
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(n_groups), 2))
    groups = SmallestLots(np.zeros(0))
    for part in np.array_split(lots[order], 5):
        groups = groups.more(part)
    assert len(groups.lots) <= 2**16
    assert groups.n_groups == pytest.approx(n_groups, rel=0.0 if n_groups < 2**16 else 0.015)
    share = np.mean(lots <= groups.below(0.1))
    assert share == pytest.approx(max(0.1, 1 / n_groups), rel=0.05, abs=0.05)
    assert share > 0.0
