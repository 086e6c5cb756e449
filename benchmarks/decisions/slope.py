"""Slopes of recalibrated scores around 1, or around the one that all tasks tell together."""

from unittest.mock import patch

from benchmarks.decisions.search_scores import scores_on_splits
from benchmarks.decisions.table import Table
from benchmarks.race.data import DATA
from deeptobit.estimators import _recalibration
from deeptobit.estimators._line import common_slope

_SPLITS = {"licorice_gargle": 10, "wide": 5, "help": 5, "nmes1988": 3, "cohort": 3, "subspace": 5}
_CENTRES = {"1": lambda *_, **__: 1.0, "their own": common_slope}


def measure() -> Table:
    """Means over splits and outcomes."""
    yield "data", "slopes around", "centred ANMSE", "CRPS", "log score"
    for name, n_splits in _SPLITS.items():
        for centre, function in _CENTRES.items():
            with patch.object(_recalibration, "common_slope", function):
                _, scores = scores_on_splits(DATA[name](), n_splits)
            yield name, centre, *scores
