import pandas as pd
import pytest

from benchmarks.race.against import compare
from benchmarks.race.ours import NAME


def results(ours: float, ridge: float = 0.8) -> pd.DataFrame:
    measured = {NAME: ours, "ridge + clipped Gaussian": ridge}
    return pd.DataFrame(
        [
            {"data": "help", "name": name, "split": split, "target": target}
            | {"centred_anmse": value, "crps": value, "log_score": value}
            for name, value in measured.items()
            for split in (0, 1)
            for target in ("a", "b")
        ]
    )


def test_a_measure_that_got_worse_is_missed() -> None:
    ratios = list(compare(results(0.5), results(0.502)))
    assert [number.value for number in ratios] == pytest.approx([1.004] * 3)
    assert not any(number.reached for number in ratios)
    assert all(number.reached for number in compare(results(0.5), results(0.501)))


def test_other_splits_are_refused() -> None:
    with pytest.raises(ValueError, match="help: the splits differ, ridge regression has"):
        list(compare(results(0.5), results(0.5, ridge=0.9)))
