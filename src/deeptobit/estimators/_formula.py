"""Models from a formula: outcomes on the left, features and their encoding on the right."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from deeptobit.estimators._formula_syntax import columns_read
from deeptobit.estimators._prediction import PredictiveRegressor
from deeptobit.extras import require

if TYPE_CHECKING:
    import pandas as pd

_INTERCEPT = "Intercept"


@dataclass(frozen=True, repr=False)
class FormulaDesign:
    """The right-hand side of a formula with the levels and constants it learned from the data.

    Parameters
    ----------
    formula : str
    targets : tuple of str
        Columns of the left-hand side.
    reads : dict
        The columns that each factor of the right-hand side reads.
    spec : formulaic.ModelSpec
    """

    formula: str
    targets: tuple[str, ...]
    reads: dict[str, tuple[str, ...]]
    spec: Any

    @classmethod
    def learn(cls, formula: str, data: pd.DataFrame) -> FormulaDesign:
        """Read the formula, and learn the encoding from these rows."""
        parsed = _parse(formula, data)
        spec = require("formulaic", "formula").ModelSpec(
            parsed.rhs, output="pandas", na_action="ignore"
        )
        design = cls(formula, _outcomes(parsed.lhs, data), _columns_by_factor(spec, data), spec)
        design = replace(design, spec=design._materialise(data).model_spec)
        if not set(design.spec.column_names) - {_INTERCEPT}:
            raise ValueError(f"the formula {formula!r} names no feature on its right-hand side")
        return design

    def __repr__(self) -> str:
        """Show the formula as it was written."""
        return f"FormulaDesign({self.formula!r})"

    @property
    def has_intercept(self) -> bool:
        """Whether the formula was written without ``0 +`` or ``- 1``."""
        return _INTERCEPT in self.spec.column_names

    def columns(self, data: pd.DataFrame) -> pd.DataFrame:
        """Features of shape (N, D) from raw columns; the intercept is the model's own."""
        import pandas as pd

        matrix = pd.DataFrame(self._materialise(data))
        return matrix.drop(columns=_INTERCEPT, errors="ignore").astype(float)

    def _materialise(self, data: pd.DataFrame) -> Any:
        """The columns of the design, with the errors of formulaic in our words."""
        errors = require("formulaic.errors", "formula")
        _check_columns(sorted({name for names in self.reads.values() for name in names}), data)
        rows = data.reset_index(drop=True)  # encoded levels come back without the index of the data
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", errors.DataMismatchWarning)
                return self.spec.get_model_matrix(rows, context={})
        except errors.DataMismatchWarning as mismatch:
            raise ValueError(self._name_unseen(data) or str(mismatch)) from None
        except errors.FormulaicError as error:
            raise ValueError(f"the formula cannot be evaluated: {error}") from None

    def _name_unseen(self, data: pd.DataFrame) -> str | None:
        """Name the column and the levels that the fit did not see."""
        for factor, contrasts in self.spec.factor_contrasts.items():
            for column in self.reads[factor.expr]:
                unseen = sorted(set(data[column]) - set(contrasts.levels), key=str)
                if unseen:
                    return (
                        f"column {column!r} has the level(s) {', '.join(map(repr, unseen))}, which "
                        f"the fit did not see; it saw {', '.join(map(repr, contrasts.levels))}"
                    )
        return None


class FormulaMixin(PredictiveRegressor):
    """Fit from a formula and a data frame, and predict from raw columns."""

    formula_: FormulaDesign
    fit: Callable[..., Any]

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: pd.DataFrame,
        *,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit a model written as a formula; needs the extra ``formula``.

        ``"MMSE + ADAS13 ~ age * apoe4 + C(site)"`` has two outcomes, the features age, apoe4 and
        their product, and a column per site but the first. Words are encoded as categories by
        themselves, ``C()`` makes categories of numbers. ``0 +`` leaves out the intercept.

        The fitted model takes data frames with the raw columns wherever it predicts or scores,
        and encodes them as here; ``formula_.columns(data)`` shows the result. A level that was not
        seen is an error.

        Parameters
        ----------
        formula : str
            Outcomes are columns; one of them gives a 1-d y. Features may be transformed by
            arithmetic, comparisons, ``log``, ``exp``, ``center``, ``scale``, ``poly``, ``bs``,
            ``cr`` and functions of ``np`` such as ``np.sqrt``. Nothing else is evaluated, so a
            formula cannot run code.
        data : DataFrame
            Missing outcomes stay missing and no row is dropped; missing features are an error.
        sample_weight : array of shape (N,), optional
        **params
            Of the constructor; ``lower`` and ``upper`` may be dicts by outcome.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> data = pd.DataFrame({"age": rng.normal(70, 8, 300), "site": ["A", "B", "C"] * 100})
        >>> mean = 36 - 0.1 * data["age"] + (data["site"] == "B")
        >>> data["MMSE"] = rng.normal(mean, 2).clip(max=30)
        >>> model = TobitRegressor.from_formula("MMSE ~ center(age) + site", data, upper=30)
        >>> model.summary()[["coef", "std_err"]].round(2)
                             coef  std_err
        target term
        MMSE   center(age)  -0.09     0.02
               site[T.B]     1.08     0.31
               site[T.C]    -0.15     0.30
               (intercept)  29.09     0.22
               log(sigma)    0.71     0.06
        >>> model.predict(pd.DataFrame({"age": [60, 80], "site": ["A", "C"]})).round(2)
        array([29.17, 27.84])
        """
        if "fit_intercept" in params:
            raise ValueError("the formula decides about the intercept; write '0 +' to leave it out")
        _check_frame(data)
        design = FormulaDesign.learn(formula, data)
        outcomes = data[list(design.targets)]
        model = cls(fit_intercept=design.has_intercept, **params)
        model.fit(
            design.columns(data),
            outcomes.iloc[:, 0] if len(design.targets) == 1 else outcomes,
            sample_weight=sample_weight,
        )
        model._keep_formula(design)
        return model

    def _keep_formula(self, design: FormulaDesign) -> None:
        """Remember how raw columns become features."""
        self.formula_ = design

    def _read_features(self, X: Any) -> Any:
        """Features of new rows; a data frame of raw columns is encoded first."""
        if hasattr(self, "formula_") and hasattr(X, "columns"):
            encoded = list(map(str, X.columns)) == list(self.feature_names_in_)
            X = X if encoded else self.formula_.columns(X)
        return super()._read_features(X)


def _check_frame(data: Any) -> None:
    import pandas as pd

    if not isinstance(data, pd.DataFrame):
        raise TypeError(f"a formula needs a pandas DataFrame; got {type(data).__name__}")


def _parse(formula: str, data: pd.DataFrame) -> Any:
    """Both sides of a formula of two sides."""
    formulaic = require("formulaic", "formula")
    # What the dot stands for: all columns that are not outcomes.
    context = {"__formulaic_variables_available__": list(data.columns)}
    try:
        parsed = formulaic.Formula.from_spec(formula, context=context)
    except (formulaic.errors.FormulaicError, SyntaxError) as error:
        reason = str(error).split("\n")[0]  # the rest is coloured for a terminal
        raise ValueError(f"the formula {formula!r} cannot be read: {reason}") from None
    sides = getattr(parsed, "lhs", None), getattr(parsed, "rhs", None)
    if not all(isinstance(side, formulaic.SimpleFormula) for side in sides):
        raise ValueError(
            f"a formula has outcomes, one ~ and features, as in 'MMSE ~ age + C(site)'; "
            f"got {formula!r}"
        )
    return parsed


def _outcomes(left: Any, data: pd.DataFrame) -> tuple[str, ...]:
    names = tuple(str(term).strip("`") for term in left)
    for name in names:
        if name not in data.columns:
            raise ValueError(
                f"the outcome {name!r} is not a column of the data; transform outcomes before, so "
                "that their bounds are in their own units"
            )
    return names


def _columns_by_factor(spec: Any, data: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    reads: dict[str, tuple[str, ...]] = {}
    for factor in spec.factors:
        if factor.eval_method.value == "lookup":
            reads[factor.expr] = (factor.expr,)
        elif factor.eval_method.value == "python":
            reads[factor.expr] = columns_read(factor.expr, data.columns)
    return reads


def _check_columns(names: list[str], data: pd.DataFrame) -> None:
    """Every column of the formula is there, without gaps."""
    absent = [name for name in names if name not in data.columns]
    if absent:
        raise ValueError(
            f"the formula needs the column(s) {', '.join(map(repr, absent))}, which the data do "
            "not have"
        )
    for name in names:
        missing = data[name].isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"column {name!r} is missing in row {int(missing.argmax())} ({int(missing.sum())} "
                "such rows); outcomes may be missing, features may not: drop or impute them first"
            )
