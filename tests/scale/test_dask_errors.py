"""What is wrong with partitions, in the words that users read."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit import TobitRegressor
from deeptobit.scale import DaskRows
from deeptobit.scale.cluster import _compute_rows

da: Any = pytest.importorskip("dask.array")

THREE = np.zeros((3, 2))


def rows(X: Any, Y: Any) -> DaskRows:
    partition = _compute_rows("partition 0", X, Y)
    return DaskRows([partition], features=["x0", "x1"], targets=["y0", "y1"], n_rows=None)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (THREE, THREE[:2], "partition 0: X has 3 rows, but y, the weights or bounds have 2"),
        (THREE, [["a", "b"]] * 3, "partition 0: y must hold numbers; convert it first"),
        (
            pd.DataFrame({"sex": ["f", "m", "f"]}),
            THREE,
            "column 'sex' of X holds .*, not numbers; encode it first",
        ),
    ],
)
def test_a_partition_that_does_not_fit_is_named(X: Any, Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rows(X, Y)


def test_lazy_predictions_take_no_bounds_per_entry() -> None:
    model = TobitRegressor(alpha=1.0).fit(np.eye(4), np.arange(4.0))
    lazy = da.from_array(np.eye(4), 2)
    with pytest.raises(ValueError, match="bounds per entry need rows in memory; predict the part"):
        model.predict(lazy, lower=np.zeros(4))


def test_partitions_without_rows_are_refused() -> None:
    empty = rows(THREE[:0], THREE[:0])
    with pytest.raises(ValueError, match="the partitions hold no rows"):
        empty.first()
    with pytest.raises(ValueError, match="the partitions hold no rows"):
        _ = empty.n_rows
