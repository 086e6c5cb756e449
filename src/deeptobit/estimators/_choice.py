"""Which solver suits the size of the data."""

from typing import Literal

SolverName = Literal["auto", "online", "batch"]
BATCH_ENTRIES = 5e7  # entries of Y up to which the optimum takes less than a minute
BATCH_FEATURES = 2e8  # entries of X up to which its standardised copies fit comfortably


def choose_solver(wanted: SolverName, shape: tuple[int, int], n_tasks: int) -> tuple[str, str]:
    """The solver for X of the given shape, and why.

    Examples
    --------
    >>> choose_solver("auto", (4000, 200), 100)
    ('batch', 'the data are small enough to go to the optimum')
    """
    if wanted in ("batch", "online"):
        return wanted, "as asked for"
    if wanted != "auto":
        raise ValueError(f"solver must be 'auto', 'batch' or 'online'; got {wanted!r}")
    if shape[0] * n_tasks <= BATCH_ENTRIES and shape[0] * shape[1] <= BATCH_FEATURES:
        return "batch", "the data are small enough to go to the optimum"
    return "online", "the data are large: one pass instead of many"
