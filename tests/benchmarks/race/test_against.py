import pandas as pd
import pytest

from benchmarks.race.against import compare
from benchmarks.race.ours import NAME


def results(ours: float, ridge: float = 0.8, log_score: float = -0.2) -> pd.DataFrame:
    measured = {NAME: ours, "ridge + clipped Gaussian": ridge}
    return pd.DataFrame(
        [
            {"data": "help", "name": name, "split": split, "target": target}
            | {"centred_anmse": value, "crps": value, "log_score": log_score}
            for name, value in measured.items()
            for split in (0, 1)
            for target in ("a", "b")
        ]
    )


def test_a_measure_that_got_worse_is_missed() -> None:
    *ratios, difference = compare(results(0.5), results(0.502, log_score=-0.196))
    assert [number.value for number in ratios] == pytest.approx([1.004] * 2)
    assert difference.value == pytest.approx(0.004)
    assert not any(number.reached for number in (*ratios, difference))
    assert all(number.reached for number in compare(results(0.5), results(0.501)))


@pytest.mark.parametrize("before", [-2.0, 0.0, 0.001, 2.0])
def test_log_scores_of_any_sign_are_compared_by_difference(before: float) -> None:
    for change, reached in ((-0.5, True), (0.0029, True), (0.0031, False)):
        now = results(0.5, log_score=before + change)
        *_, number = compare(results(0.5, log_score=before), now)
        assert number.value == pytest.approx(change)
        assert number.reached is reached


def test_other_splits_are_refused() -> None:
    with pytest.raises(ValueError, match="help: the splits differ, ridge regression has"):
        list(compare(results(0.5), results(0.5, ridge=0.9)))
