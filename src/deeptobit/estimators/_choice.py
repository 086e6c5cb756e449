"""Which solver suits the size of the data."""

from typing import Literal

SolverName = Literal["auto", "online", "batch"]
BATCH_ENTRIES = 5e7  # entries of Y up to which the optimum takes less than a minute
BATCH_FEATURES = 2e8  # entries of X up to which its standardised copies fit comfortably
NEEDS_BATCH = (
    "{}: feature_sparsity > 0 needs all rows at once; call fit with solver='batch', or set "
    "feature_sparsity=0"
)


def choose_solver(
    wanted: SolverName, shape: tuple[int, int], n_tasks: int, *, feature_sparsity: float = 0.0
) -> tuple[str, str]:
    """The solver for X of the given shape, and why.

    Examples
    --------
    >>> choose_solver("auto", (4000, 200), 100)
    ('batch', 'the data are small enough to go to the optimum')
    """
    if feature_sparsity > 0.0 and wanted == "online":
        raise ValueError(NEEDS_BATCH.format("solver='online' cannot choose features"))
    if feature_sparsity > 0.0 and wanted == "auto":
        return "batch", "feature_sparsity needs the batch solver"
    if wanted in ("batch", "online"):
        return wanted, "as asked for"
    if wanted != "auto":
        raise ValueError(f"solver must be 'auto', 'batch' or 'online'; got {wanted!r}")
    if shape[0] * n_tasks <= BATCH_ENTRIES and shape[0] * shape[1] <= BATCH_FEATURES:
        return "batch", "the data are small enough to go to the optimum"
    return "online", "the data are large: one pass instead of many"
