"""How many components ``alpha="auto"`` keeps where the rank is larger than the truth's."""

import warnings

import numpy as np

from benchmarks.decisions.table import Table
from benchmarks.shrinkage import SHAPES, TRUE_RANK, draw, errors, fit
from deeptobit.exceptions import CensoringWarning

SEEDS = range(100, 110)
RANKS = (TRUE_RANK, 8, 12)


def measure() -> Table:
    """Four problems of rank four: what is kept, and what it costs to ask for more."""
    yield (
        "rows × features × outcomes",
        "rank",
        "components kept, by seed",
        "error of W",
        "log score",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CensoringWarning)
        for shape in SHAPES:
            for rank in RANKS:
                kept, found = [], []
                for seed in SEEDS:
                    drawn = draw(shape, seed)
                    model = fit(drawn, rank)
                    kept.append(np.linalg.matrix_rank(model.coef_))
                    found.append(errors(model, drawn)[:2])
                coef, score = np.mean(found, axis=0).tolist()
                yield str(shape), rank, " ".join(map(str, kept)), coef, score
