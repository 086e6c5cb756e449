"""Estimators and noise families that each break one promise, by the check that must find it."""

import os
from typing import Any

import numpy as np

from deeptobit import CensoredTargets, SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Derivatives, Gaussian


class Sound(SubspaceTobitRegressor):
    """What the others break; ``shift`` says by how much the last fit is to be wrong."""

    def fit(self, X: Any, y: Any = None, **metadata: Any) -> "Sound":
        super().fit(X, y, **metadata)
        self.intercept_ = self.intercept_ + self._error(X)
        return self

    def _error(self, X: Any) -> float:
        return 0.0


class CentresItsInput(Sound):
    def fit(self, X: Any, y: Any = None, **metadata: Any) -> Sound:
        X -= X.mean(axis=0)
        return super().fit(X, y, **metadata)


class SharesItsRows(Sound):
    def fit(self, X: Any, y: Any = None, **metadata: Any) -> Sound:
        super().fit(X, y, **metadata)
        self._rows = X
        return self

    def _latent(self, X: Any) -> FloatArray:
        return super()._latent(X) + 1e-3 * float(self._rows.mean())


class ForgetsAsItPredicts(Sound):
    def predict(self, X: Any, *args: Any, **metadata: Any) -> FloatArray:
        self.sigma_ = 1.01 * self.sigma_
        return super().predict(X, *args, **metadata)


class DrawsAsItPredicts(Sound):
    def predict(self, X: Any, *args: Any, **metadata: Any) -> FloatArray:
        np.random.random()  # noqa: NPY002  (that is what is wrong with it)
        return super().predict(X, *args, **metadata)


class IsLostFarOut(Sound):
    def _latent(self, X: Any) -> FloatArray:
        return np.where(np.abs(X).max(axis=1)[:, None] < 100.0, super()._latent(X), np.nan)


class FallsBelow(Sound):
    def predict(self, X: Any, *args: Any, **metadata: Any) -> FloatArray:
        return super().predict(X, *args, **metadata) - 2.0


class CountsQuantilesDown(Sound):
    def predict_quantile(self, X: Any, q: Any, **metadata: Any) -> FloatArray:
        return super().predict_quantile(X, q, **metadata)[::-1]


class DoublesAtBounds(Sound):
    def predict_bound_proba(self, X: Any, **metadata: Any) -> tuple[FloatArray, FloatArray]:
        at_lower, at_upper = super().predict_bound_proba(X, **metadata)
        return 0.5 * at_lower, at_upper


class KeepsTheAxis(Sound):
    def _drop_task_axis(self, result: FloatArray, X: Any) -> FloatArray:
        return result


class SeesTheLayout(Sound):
    def _error(self, X: Any) -> float:
        return 0.0 if X.flags.c_contiguous else 1e-3


class DropsTheNames(Sound):
    def fit(self, X: Any, y: Any = None, **metadata: Any) -> Sound:
        return super().fit(np.asarray(X), np.asarray(y), **metadata)


class IsAlwaysDouble(Sound):
    def predict(self, X: Any, *args: Any, **metadata: Any) -> FloatArray:
        return super().predict(np.asarray(X, np.float64), *args, **metadata)


class IgnoresIntervals(Sound):
    def fit(self, X: Any, y: Any = None, **metadata: Any) -> Sound:
        if isinstance(y, CensoredTargets):
            y = CensoredTargets.from_bounds(y.values)
        return super().fit(X, y, **metadata)


class ReadsNamesByPosition(Sound):
    def fit(self, X: Any, y: Any = None, **metadata: Any) -> Sound:
        given = self.lower
        if isinstance(given, dict):
            self.lower = list(given.values())
        super().fit(X, y, **metadata)
        self.lower = given
        return self


class RoundsWhenStored(Sound):
    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        return state | {"coef_": np.round(self.coef_, 2)}


class RemembersItsFits(Sound):
    def _error(self, X: Any) -> float:
        self.n_fits_ = getattr(self, "n_fits_", -1) + 1
        return 1e-3 * self.n_fits_


class KeepsItsRows(Sound):
    def _error(self, X: Any) -> float:
        self.rows_ = np.array(X)
        return 0.0


class DependsOnJobs(Sound):
    def _error(self, X: Any) -> float:
        return 1e-3 * (self.n_jobs or 0)


class DependsOnTheProcess(Sound):
    def _error(self, X: Any) -> float:
        return 1e-3 * os.getpid()


class CountsItsCalls(Sound):
    def partial_fit(self, X: Any, y: Any, **metadata: Any) -> Sound:
        super().partial_fit(X, y, **metadata)
        self.n_calls_ = getattr(self, "n_calls_", 0) + 1
        self.intercept_ = self.intercept_ + 1e-3 * self.n_calls_
        return self


class LosesItsPlace(Sound):
    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_stream", None)
        return state


class Hoards(Sound):
    def partial_fit(self, X: Any, y: Any, **metadata: Any) -> Sound:
        super().partial_fit(X, y, **metadata)
        self.rows_ = [*getattr(self, "rows_", []), np.array(X)]
        return self


class OneSided(Gaussian):
    def log_sf(self, z: FloatArray) -> FloatArray:
        return super().log_sf(z) + 1e-3


class Unnormalised(Gaussian):
    def log_pdf(self, z: FloatArray) -> FloatArray:
        return super().log_pdf(z) + 0.1


class Steeper(Gaussian):
    def score(self, z: FloatArray) -> FloatArray:
        return 1.1 * super().score(z)


class Clipped(Gaussian):
    def log_cdf(self, z: FloatArray) -> FloatArray:
        return np.log(np.maximum(np.exp(super().log_cdf(z)), 1e-5))


class Twice(Gaussian):
    def interval(self, a: FloatArray, b: FloatArray) -> Derivatives:
        found = super().interval(a, b)
        return found._replace(log_sigma=2.0 * found.log_sigma)


class HeavierAbove(Gaussian):
    def upper_mean(self, z: FloatArray) -> FloatArray:
        return 1.01 * super().upper_mean(z)


class Wider(Gaussian):
    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return 1.1 * super().sample(rng, shape)


class MuchWider(Gaussian):
    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return 50.0 * super().sample(rng, shape)


# Check, what breaks its promise, and what the check says of it.
BROKEN: list[tuple[str, Any, str]] = [
    ("check_inputs_are_not_modified", CentresItsInput(2), "X is modified by fit"),
    ("check_nothing_is_shared", SharesItsRows(2), "after the training data were overwritten"),
    ("check_predict_is_pure", ForgetsAsItPredicts(2), "predictions change sigma_"),
    ("check_predict_is_pure", DrawsAsItPredicts(2), "NumPy's global random numbers"),
    ("check_no_nan_leaves", IsLostFarOut(2), "predict is not finite for 1000 times X"),
    ("check_bounds_are_respected", FallsBelow(2), "predict falls below the lower bound"),
    ("check_distribution_is_coherent", CountsQuantilesDown(2), "a quantile falls as q rises"),
    ("check_distribution_is_coherent", DoublesAtBounds(2), "at the bounds disagree"),
    ("check_one_outcome_is_one_dimensional", KeepsTheAxis(2), r"has shape .*, not \("),
    ("check_layouts_agree", SeesTheLayout(2), "answers differently for Fortran's order"),
    ("check_containers_agree", DropsTheNames(2), r"feature_names_in_ are wrong for pandas: \[\]"),
    ("check_precision_is_kept", IsAlwaysDouble(2), "features of float32 in float64"),
    ("check_censored_targets_agree", IgnoresIntervals(2), "differently for CensoredTargets"),
    (
        "check_bounds_agree",
        ReadsNamesByPosition(2, lower=[0.0, -1.0, -2.0], outside="clip"),
        "answers differently for bounds as a dict",
    ),
    ("check_copies_agree", RoundsWhenStored(2), "answers differently after pickling"),
    ("check_refit_forgets", RemembersItsFits(2), "differently after a fit to other data"),
    ("check_training_rows_are_not_stored", KeepsItsRows(2), r"holds 80 row\(s\) of X"),
    ("check_n_jobs_changes_nothing", DependsOnJobs(2), "answers differently with n_jobs=2"),
    ("check_same_seed_across_processes", DependsOnTheProcess(2), "in another process"),
    ("check_partial_fit_in_pieces", CountsItsCalls(2), "when it learns in pieces"),
    ("check_pickled_stream_goes_on", LosesItsPlace(2), "pickled in the middle of a stream"),
    ("check_memory_is_bounded", Hoards(2), "bytes passed through partial_fit"),
    ("check_noise_sides", OneSided(), "log_cdf and log_sf"),
    ("check_noise_density", Unnormalised(), "log_pdf and the slope of log_cdf do not agree"),
    ("check_noise_score", Steeper(), "score and the slope of log_pdf do not agree"),
    ("check_noise_tails", Clipped(), "log_cdf stops falling far out"),
    ("check_noise_intervals", Twice(), "log_sigma is not the slope of nll"),
    ("check_noise_moments", HeavierAbove(), "upper_mean"),
    ("check_noise_draws", Wider(), "draws do not follow log_cdf"),
    ("check_noise_in_a_fit", MuchWider(), "coefficients of a fit"),
]
