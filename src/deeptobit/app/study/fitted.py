"""A study that has been fitted, and what goes with it."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deeptobit.app.study.config import Source, Study, parse_study
from deeptobit.app.study.doctor import Finding
from deeptobit.app.study.encoding import Encoder
from deeptobit.app.study.measures import measure
from deeptobit.arrays import FloatArray
from deeptobit.estimators import (
    AutoTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    TobitRegressor,
    estimator_from_state,
    estimator_state,
    noise_from_state,
    noise_state,
)
from deeptobit.exceptions import ModelFileError
from deeptobit.files import read_state, write_state
from deeptobit.likelihood import Predictive
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd


StudyModel = AutoTobitRegressor | SubspaceNetworkCV | SubspaceNetworkRegressor | TobitRegressor

# Honest numbers: how well rows are predicted by models that have not seen them.


@dataclass(frozen=True, eq=False)
class HeldOut:
    r"""Every row of a study, predicted by a model that was fitted without it and its group.

    Attributes
    ----------
    targets : CensoredTargets of shape (N, T)
    predictive : Predictive of shape (N, T)
        Of the model; σ is that of the fold, (N, T).
    null : Predictive of shape (N, T)
        Of the censored model that has intercepts alone.
    stages : tuple of arrays of shape (N, T)
        E[y|x] after every layer, the last being the mean of ``predictive``. Where a fold chose
        fewer layers than another, its last one is repeated.
    coverage : float
        That prediction intervals promise, between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[30.0], [21.0], [27.0]], 0, 30, names=["MMSE"])
    >>> latent, sigma = np.array([[31.0], [22.0], [26.0]]), np.full((3, 1), 2.0)
    >>> model = Predictive(Gaussian(), latent, sigma, targets.lower, targets.upper)
    >>> null = Predictive(Gaussian(), np.full((3, 1), 26.0), sigma, targets.lower, targets.upper)
    >>> held_out = HeldOut(targets, model, null, (model.mean(),), coverage=0.9)
    >>> held_out.table()[["entries", "at_upper", "r2", "crps", "null_crps", "coverage"]].round(2)
            entries  at_upper    r2  crps  null_crps  coverage
    target
    MMSE          3      0.33  0.95  0.46       2.48       1.0
    """

    targets: CensoredTargets
    predictive: Predictive
    null: Predictive
    stages: tuple[FloatArray, ...]
    coverage: float

    def table(self) -> pd.DataFrame:
        r"""Measures of the model and of the one without features, one row per target.

        Bounds, values and shares at the bounds, then those of :func:`measure`; the same with
        ``null_`` before them is of the model without features.
        """
        described = self.targets.describe()
        measured = described[["lower", "upper", "entries", "at_lower", "at_upper"]]
        model = measure(self.targets, self.predictive, self.coverage)
        null = measure(self.targets, self.null, self.coverage)
        return measured.assign(**model, **{f"null_{name}": of for name, of in null.items()})


@dataclass(frozen=True, eq=False)
class FittedStudy:
    """The model of a study, how it does on rows it has not seen, and where it comes from.

    No ids are in it, and neither comments of the study file nor the name of its table; outcomes
    of the rows are.

    Attributes
    ----------
    model : AutoTobitRegressor, SubspaceNetworkCV, TobitRegressor or SubspaceNetworkRegressor
        Fitted to all rows, or streamed: fitted to all but those that were held out.
    encoder : Encoder
        Turns other tables into the features of the model.
    name : str
        Of the study file, without its ending.
    text : str
        The settings of the study file, in its own language.
    held_out : HeldOut
    findings : tuple of Finding
        What ``diagnose`` found, and what the fit warned of.
    n_groups : int or None
    facts : dict of str
        Versions of Python and packages, folds, seed, date, seconds.
    n_rows : int
        Rows of the table.
    """

    model: StudyModel
    encoder: Encoder
    name: str
    text: str
    held_out: HeldOut
    findings: tuple[Finding, ...]
    n_groups: int | None
    facts: dict[str, str]
    n_rows: int

    @cached_property
    def study(self) -> Study:
        """The settings of the study file."""
        return parse_study(Source(Path(f"{self.name}.toml"), self.text))

    @property
    def summary(self) -> pd.DataFrame:
        """Bounds, shares at them and missing values, one row per target."""
        return self.held_out.targets.describe()

    @property
    def n_held_out(self) -> int:
        """Rows that were predicted by a model which had not seen them: all, unless streamed."""
        return len(self.held_out.targets)

    @property
    def streamed(self) -> bool:
        """Whether the table was beyond memory, and one model was fitted to most of its rows."""
        return self.n_held_out < self.n_rows


# Held-out predictions as plain values and arrays, and back.


def held_out_state(held_out: HeldOut) -> dict[str, Any]:
    """Bounds are stored once: predictions have those of the targets."""
    targets = held_out.targets
    return {
        "targets": {
            "names": list(targets.names),
            "low": targets.low,
            "high": targets.high,
            "lower": targets.lower,
            "upper": targets.upper,
            "entry_lower": targets.entry_lower,
            "entry_upper": targets.entry_upper,
        },
        "noise": noise_state(held_out.predictive.noise),
        "model": _scores(held_out.predictive),
        "null": _scores(held_out.null),
        "stages": list(held_out.stages),
        "coverage": held_out.coverage,
    }


def held_out_from_state(state: Mapping[str, Any]) -> HeldOut:
    """The predictions that ``held_out_state`` described."""
    described = dict(state["targets"])
    targets = CensoredTargets(**described | {"names": tuple(described["names"])})
    noise = noise_from_state(state["noise"])
    bounds = targets.lower_bounds, targets.upper_bounds
    return HeldOut(
        targets=targets,
        predictive=Predictive(noise, state["model"]["latent"], state["model"]["sigma"], *bounds),
        null=Predictive(noise, state["null"]["latent"], state["null"]["sigma"], *bounds),
        stages=tuple(state["stages"]),
        coverage=state["coverage"],
    )


def _scores(predictive: Predictive) -> dict[str, Any]:
    return {"latent": predictive.latent, "sigma": predictive.sigma}


# The file that holds a fitted study.

KIND = "study"


def save_fitted(fitted: FittedStudy, path: Path | str) -> None:
    r"""Write a fitted study to one file, whole or not at all.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import build_data, fit_study, read_data, read_study
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{age},{min(90 - age, 30)}" for age in range(40, 80)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.csv"\ntargets.MMSE = {upper = 30}\nmodel.members = ["stack"]'
    ...     )
    ...     study = read_study(path)
    ...     fitted = fit_study(study, build_data(study, read_data(study)))
    ...     save_fitted(fitted, Path(folder, "study.deeptobit"))
    ...     load_fitted(Path(folder, "study.deeptobit")).encoder.features
    ['age']
    """
    state = {
        "model": estimator_state(fitted.model),
        "encoder": fitted.encoder.to_state(),
        "name": fitted.name,
        "text": fitted.text,
        "held_out": held_out_state(fitted.held_out),
        "findings": [list(finding) for finding in fitted.findings],
        "n_groups": fitted.n_groups,
        "facts": fitted.facts,
        "n_rows": fitted.n_rows,
    }
    write_state(path, KIND, state)


def load_fitted(path: Path | str) -> FittedStudy:
    """Read the file of a fitted study; one that is damaged or something else is refused.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "letter.txt")
    ...     _ = path.write_text("Dear colleague, here is the model.")
    ...     load_fitted(path)
    Traceback (most recent call last):
        ...
    deeptobit.exceptions.ModelFileError: ...letter.txt cannot be loaded: it is not a deeptobit model
    file
    """
    _, state = read_state(path, KIND)
    try:
        return _from_state(state)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ModelFileError(
            f"{path} comes from another version of deeptobit, which stored studies differently; "
            "fit the study again"
        ) from None


def _from_state(state: Mapping[str, Any]) -> FittedStudy:
    model: Any = estimator_from_state(state["model"])
    return FittedStudy(
        model=model,
        encoder=Encoder.from_state(state["encoder"]),
        name=state["name"],
        text=state["text"],
        held_out=held_out_from_state(state["held_out"]),
        findings=tuple(Finding(*finding) for finding in state["findings"]),
        n_groups=state["n_groups"],
        facts=state["facts"],
        n_rows=state["n_rows"],
    )


# What a result was made with.


def versions() -> dict[str, str]:
    """Versions of Python, of deeptobit and of what its numbers depend on.

    Examples
    --------
    >>> list(versions())
    ['python', 'deeptobit', 'numpy', 'scipy', 'scikit-learn']
    """
    packages = ("deeptobit", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
