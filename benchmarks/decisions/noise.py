"""Gaussian noise for everything, or the family under which held-out rows are most likely."""

from benchmarks.decisions.search_scores import scores_on_splits
from benchmarks.decisions.table import Table
from benchmarks.race.data import DATA

NAMES = ("help", "licorice_gargle", "nmes1988", "cohort", "cohort-nonlinear")


def measure() -> Table:
    """Means over three splits and outcomes."""
    yield "data", "noise", "chosen", "centred ANMSE", "CRPS", "log score"
    for name in NAMES:
        for noise in ("gaussian", "auto"):
            chosen, scores = scores_on_splits(DATA[name](), 3, noise=noise)
            yield name, noise, chosen, *scores
