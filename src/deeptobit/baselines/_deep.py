"""The networks that the paper compares with, by the names it gives them."""

from __future__ import annotations

from typing import Any, Literal

from deeptobit.baselines._folds import Folds
from deeptobit.baselines._networks import Design, NetworkBaseline
from deeptobit.targets import BoundsLike


class MLPBaseline(NetworkBaseline):
    r"""The paper's MLP: layers of the sizes of a Subspace Network's, with full weight matrices.

    .. math:: f(x) = \mathrm{clip}(W_K \max(0, W_{K-1} \cdots \max(0, W_1 x + b_1) \cdots) + b_K)

    The outputs are clipped to the bounds while it learns, as those of a Subspace Network are: for
    outcomes from 0 on, that is its third ReLU layer.

    Parameters
    ----------
    n_layers : int
        Weight matrices, the one in front of the outcomes included.
    width : int, optional
        Units of every hidden layer; T by default, as in the paper.
    lower, upper, cv, random_state
        As for every baseline.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = MLPBaseline(n_layers=2, width=3).fit(X, np.abs(X))
    >>> [(U.shape, V.shape) for U, V in model.layers_]
    [((3, 2), (2, 2)), ((2, 2), (2, 3))]
    """

    def _design(self) -> Design:
        return Design(bounded=True)


class FactorisedMLPBaseline(NetworkBaseline):
    """f-MLP: the MLP, each weight matrix truncated to a rank; rf-MLP: its factors trained again.

    Parameters
    ----------
    rank : int
        R; a matrix with fewer rows or columns keeps its own.
    retrain : bool
        Whether the factors U and V are trained again, all layers together (rf-MLP).
    n_layers, width, lower, upper, cv, random_state
        As for :class:`MLPBaseline`.

    Examples
    --------
    >>> FactorisedMLPBaseline(3, retrain=True, lower=0)
    FactorisedMLPBaseline(lower=0, rank=3, retrain=True)
    """

    def __init__(
        self,
        rank: int = 5,
        *,
        retrain: bool = False,
        n_layers: int = 3,
        width: int | None = None,
        lower: BoundsLike = None,
        upper: BoundsLike = None,
        cv: int | Folds = 5,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            n_layers=n_layers,
            width=width,
            lower=lower,
            upper=upper,
            cv=cv,
            random_state=random_state,
        )
        self.rank = rank
        self.retrain = retrain

    def _design(self) -> Design:
        return Design(bounded=True, rank=self.rank, retrained=self.retrain)


class DeepBaseline(NetworkBaseline):
    """DNN i, ii and iii of the paper's comparison.

    i learns by a plain squared error and is clipped afterwards; the outputs of ii are clipped to
    the bounds while it learns (the paper's ReLU), which makes it the MLP; iii is ii with factorised
    weights that were trained again, which makes it the rf-MLP.

    Parameters
    ----------
    kind : {"i", "ii", "iii"}
    rank : int
        R of kind iii.
    n_layers, width, lower, upper, cv, random_state
        As for :class:`MLPBaseline`.

    Examples
    --------
    >>> DeepBaseline("iii", rank=3, lower=0)
    DeepBaseline(kind='iii', lower=0, rank=3)
    """

    def __init__(
        self,
        kind: Literal["i", "ii", "iii"] = "i",
        *,
        rank: int = 5,
        n_layers: int = 3,
        width: int | None = None,
        lower: BoundsLike = None,
        upper: BoundsLike = None,
        cv: int | Folds = 5,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            n_layers=n_layers,
            width=width,
            lower=lower,
            upper=upper,
            cv=cv,
            random_state=random_state,
        )
        self.kind = kind
        self.rank = rank

    def _design(self) -> Design:
        designs = {
            "i": Design(bounded=False),
            "ii": Design(bounded=True),
            "iii": Design(bounded=True, rank=self.rank, retrained=True),
        }
        if self.kind not in designs:
            raise ValueError(f"kind must be 'i', 'ii' or 'iii'; got {self.kind!r}")
        return designs[self.kind]
