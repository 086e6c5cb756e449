"""Which loadings are called stable: signs that hold in a fresh cohort, and what is kept."""

import numpy as np

from benchmarks.decisions.table import Table
from benchmarks.inference import DRAWN, separated

SEEDS = range(9000, 9008)  # others than those of `python -m benchmarks inference`


def measure() -> Table:
    """The share of signs that hold, and of loadings beyond a tenth of the largest that are kept."""
    yield "cohorts", "stable at 95 %", "held", "held in the closest component", "kept"
    for name, (draw, n_people) in DRAWN.items():
        found = [one for seed in SEEDS for one in separated(draw(n_people, seed))]
        for as_set in (False, True):
            masks = [
                one.loadings["stable" if as_set else "sign_probability"].to_numpy() >= 0.95
                for one in found
            ]
            pairs = list(zip(found, masks, strict=True))
            held = np.concatenate([one.held[mask] for one, mask in pairs])
            closest = np.concatenate([one.held_closest[mask] for one, mask in pairs])
            kept = np.concatenate([mask[one.large()] for one, mask in pairs])
            shares = [float(some.mean()) for some in (held, closest, kept)]
            yield name, "the set" if as_set else "each", *shares
