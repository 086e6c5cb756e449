"""What a method is given to learn from."""

from typing import NamedTuple

from deeptobit.app.study import Folds
from deeptobit.arrays import FloatArray


class Problem(NamedTuple):
    """Training rows of one split.

    Features and outcomes are in standard units of the training rows (a column that does not vary
    there is all 0), bounds in those of their outcomes, so that no method has to scale anything.

    Attributes
    ----------
    X : array of shape (N, D)
        Without gaps.
    Y : array of shape (N, T)
        NaN where an outcome is missing. A method for one task at a time drops the rows of that
        task; one for all tasks at once fills them.
    lower, upper : arrays of shape (T,)
        Bounds, ∓inf where open. A value at its bound may stand for anything beyond it.
    folds : list of pairs of row indices
        By which settings are chosen: rows to fit, rows to judge. The same for every method.
    seed : int
        Of whatever a method draws at random.
    """

    X: FloatArray
    Y: FloatArray
    lower: FloatArray
    upper: FloatArray
    folds: Folds
    seed: int
