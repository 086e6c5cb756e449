"""The data of an empirical-Bayes layer, in standard units."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Gaussian
from deeptobit.objective import Design, OlsenProblem, RoundFeatures, TargetScaling
from deeptobit.solvers._tobit import SIGMA_FLOOR, CensoringKinds, fit_tobit
from deeptobit.targets import CensoredTargets

_MAX_DENSE = 2e8  # entries of X that may be stored densely


@dataclass(frozen=True)
class EvidenceProblem:
    r"""Features, intervals and the intercept-only model from which the EM starts.

    Parameters
    ----------
    matrix : array of shape (N, D)
        Standardised features, dense.
    weight : array of shape (N,)
        Row weights as given: a weight of 2 is a row twice.
    low, high : arrays of shape (N, T)
        Ends of the intervals in standard units, NaN where nothing is known. Tasks that are censored
        on one side throughout have no maximum and are set aside as unknown.
    intercept, sigma : arrays of shape (T,)
        Of the intercept-only model.
    free_sigma : bool array of shape (T,)
        Where σ is determined; elsewhere it is held.
    fit_intercept : bool
    kinds : CensoringKinds
        Tasks that are censored throughout.
    design, scaling
        How the features (without their matrix) and the outcomes were standardised.
    """

    matrix: FloatArray
    weight: FloatArray
    low: FloatArray
    high: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    free_sigma: BoolArray
    fit_intercept: bool
    kinds: CensoringKinds
    design: Design
    scaling: TargetScaling

    @classmethod
    def build(
        cls,
        X: Any,
        targets: CensoredTargets,
        weight: FloatArray,
        *,
        fit_intercept: bool = True,
        standardize: bool = True,
    ) -> EvidenceProblem:
        """Standardise, fit intercepts and noise scales alone, set aside what has no maximum.

        Examples
        --------
        >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [2.0]], lower=0)
        >>> EvidenceProblem.build(np.array([[1.0], [2.0], [4.0]]), targets, np.ones(3)).gram
        array([[3.]])
        """
        share = weight / weight.sum()
        design = Design.build(_dense(X), share, center=fit_intercept, standardize=standardize)
        scaling = TargetScaling.build(targets, share, center=fit_intercept)
        constant = OlsenProblem(
            features=_no_features(design),
            targets=targets,
            scaling=scaling,
            noise=Gaussian(),
            fit_intercept=fit_intercept,
            free_sigma=np.ones(targets.shape[1], dtype=np.bool_),
            max_theta=1.0 / SIGMA_FLOOR,
        )
        constant, fit, kinds = fit_tobit(
            constant, None, total_weight=float(weight.sum()), tol=1e-8, max_iter=100
        )
        aside = np.where(kinds.one_sided, np.nan, 0.0)
        theta = fit.point[-1]
        return cls(
            matrix=design.matrix,
            weight=weight,
            low=scaling.apply(targets.low) + aside,
            high=scaling.apply(targets.high) + aside,
            intercept=fit.point[-2] / theta,
            sigma=1.0 / theta,
            free_sigma=constant.free_sigma,
            fit_intercept=fit_intercept,
            kinds=kinds,
            design=design.without_matrix(),
            scaling=scaling,
        )

    @cached_property
    def total_weight(self) -> float:
        """The number of rows n, counted with their weights."""
        return float(self.weight.sum())

    @cached_property
    def missing(self) -> BoolArray:
        """Entries of which nothing is known, (N, T)."""
        return np.isnan(self.low)

    @cached_property
    def known_weight(self) -> FloatArray:
        """Weight of the rows of which something is known, of every task, (T,)."""
        return np.asarray(self.weight @ ~self.missing)

    @cached_property
    def weighted_rows(self) -> FloatArray:
        """Rows times the root of their weight, (N, D)."""
        return np.asarray(np.sqrt(self.weight)[:, None] * self.matrix)

    @cached_property
    def gram(self) -> FloatArray:
        """Σ_i w_i x_i x_iᵀ, (D, D)."""
        return np.asarray(self.weighted_rows.T @ self.weighted_rows)


def _dense(X: Any) -> Any:
    """X as an array; every feature has a variance to learn, so that a sparse X must be small."""
    n_samples, n_features = X.shape
    if not issparse(X):
        return X
    if n_samples * n_features > _MAX_DENSE:
        raise ValueError(
            f"X is sparse, and {n_samples} x {n_features} is too large to learn a variance for "
            "every feature; give alphas or ranks to search the penalised layer instead"
        )
    return X.toarray()  # type: ignore[attr-defined]


def _no_features(design: Design) -> RoundFeatures:
    n_samples, n_features = design.shape
    return RoundFeatures(
        design.without_matrix(),
        np.zeros((n_features, 0)),
        np.zeros(0),
        np.zeros((n_samples, 0)),
    )
