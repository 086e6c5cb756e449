"""AutoTobitRegressor against tuned peers on the HELP trial."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.cohort import OURS, PEERS, Scores, _ours, _peer
from benchmarks.decisions.help_split import draw_help
from benchmarks.decisions.table import Table

SPLITS = range(3)


def measure() -> Table:
    """Centred ANMSE and CRPS, mean over splits."""
    yield "model", "centred ANMSE", "CRPS"
    tables = [_race(seed) for seed in SPLITS]
    for name in tables[0]:
        anmse, crps = np.mean([table[name] for table in tables], axis=0).tolist()
        yield name, anmse, crps


def _race(seed: int) -> dict[str, Scores]:
    split = draw_help(seed)
    table = {OURS: _ours(split)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of a lasso on the smallest alphas
        for name, tune in PEERS.items():
            table |= _peer(name, tune, split)
    return table
