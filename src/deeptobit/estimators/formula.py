"""Models from a formula: outcomes on the left, features and their encoding on the right."""

import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import pandas as pd
from numpy.typing import ArrayLike

from deeptobit.estimators.expressions import BASES, columns_read, shown
from deeptobit.estimators.prediction import PredictiveRegressor
from deeptobit.exceptions import ModelFileError
from deeptobit.extras import require
from deeptobit.files import values

_LONGEST = 100_000  # characters of a formula
_MOST_TERMS = 2000
_MOST_FEATURES = 10_000  # of all terms together
_NOT_EVALUATED = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, MemoryError)
_INTERCEPT = "Intercept"
_BAR = re.compile(r"\+?\s*\(([^()|~]*)\|([^()|~]*)\)")


def split_bars(formula: str) -> tuple[str, list[tuple[str, str]]]:
    """The fixed part of a formula, and what is on both sides of its bars.

    Examples
    --------
    >>> split_bars("MMSE ~ age * time + (1 + time | person)")
    ('MMSE ~ age * time', [('1 + time', 'person')])
    """
    if "|" not in str(formula):
        return formula, []
    bars = [(left.strip(), right.strip()) for left, right in _BAR.findall(formula)]
    return _BAR.sub("", formula).strip(), bars


@dataclass(frozen=True, repr=False)
class FormulaDesign:
    """A formula with the levels and constants that its right-hand side learned from the data.

    Parameters
    ----------
    formula : str
    targets : tuple of str
        Columns of the left-hand side.
    reads : list of str
        Raw columns that the right-hand side reads.
    kinds : dict
        Whether a factor of the right-hand side is ``"numerical"`` or ``"categorical"``.
    levels : dict
        Levels of the categorical factors.
    constants : dict
        What ``center``, ``scale``, ``bs`` and others learned.
    """

    formula: str
    targets: tuple[str, ...]
    reads: list[str]
    kinds: dict[str, str]
    levels: dict[str, list[Any]]
    constants: dict[str, dict[Any, Any]]

    @classmethod
    def learn(cls, formula: str, data: pd.DataFrame) -> Self:
        """Read the formula, and learn the encoding from these rows."""
        targets, spec = _read_formula(formula, data)
        reads = _columns_of(spec, data)
        spec = _model_matrix(spec, reads, data).model_spec
        if not set(spec.column_names) - {_INTERCEPT}:
            raise ValueError(f"the formula {formula!r} names no feature on its right-hand side")
        kinds, levels = {}, {}
        for factor, (kind, state) in spec.encoder_state.items():
            kinds[factor] = kind.value
            if "categories" in state:
                levels[factor] = list(state["categories"])
        design = cls(formula, targets, reads, kinds, levels, spec.transform_state)
        vars(design)["spec"] = spec
        return design

    @cached_property
    def spec(self) -> Any:
        """The encoding, for formulaic; after loading it is rebuilt on first use."""
        require("formulaic", "formula")
        try:
            return self._restore()
        except Exception as error:  # whatever formulaic makes of a text that is not a formula
            raise ModelFileError(f"the stored formula {self.formula!r} fails: {error}") from None

    def _restore(self) -> Any:
        as_kind = require("formulaic.parser.types", "formula").Factor.Kind
        types: dict[str, type] = dict.fromkeys((*self.targets, *self.reads), float)
        types |= {name: object for name in types if self.kinds.get(name) == "categorical"}
        rows = pd.DataFrame({name: pd.Series([], dtype=types[name]) for name in types})
        levels = {factor: {"categories": self.levels[factor]} for factor in self.levels}
        _, spec = _read_formula(
            self.formula,
            rows,
            transform_state={factor: dict(state) for factor, state in self.constants.items()},
            encoder_state={
                factor: (as_kind(kind), levels.get(factor, {}))
                for factor, kind in self.kinds.items()
            },
        )
        return _model_matrix(spec, _columns_of(spec, rows), rows).model_spec

    def __repr__(self) -> str:
        """Show the formula as it was written."""
        return f"FormulaDesign({self.formula!r})"

    def columns(self, data: pd.DataFrame) -> pd.DataFrame:
        """Features of shape (N, D) from raw columns; the intercept is the model's own."""
        matrix = pd.DataFrame(_model_matrix(self.spec, self.reads, data)).set_axis(data.index)
        return matrix.drop(columns=_INTERCEPT, errors="ignore").astype(float)


class FormulaMixin(PredictiveRegressor):
    """Fit from a formula and a data frame, and predict from raw columns."""

    formula_: FormulaDesign
    fit: Callable[..., Any]
    _visit_columns: dict[str, str]  # that hold people and time

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
        if not isinstance(data, pd.DataFrame):
            raise TypeError(f"a formula needs a pandas DataFrame; got {type(data).__name__}")
        fixed, bars = split_bars(formula)
        columns = cls._read_bars(bars, data)
        design = FormulaDesign.learn(fixed, data)
        outcomes = data[list(design.targets)]
        if columns:
            params["random_effects"] = "slope" if "time" in columns else "intercept"
        model = cls(fit_intercept=_INTERCEPT in design.spec.column_names, **params)
        if columns:
            model._visit_columns = columns
        model.fit(
            design.columns(data),
            outcomes.iloc[:, 0] if len(design.targets) == 1 else outcomes,
            sample_weight=sample_weight,
            **{name: data[column] for name, column in columns.items()},
        )
        model.formula_ = design
        if hasattr(model, "best_estimator_"):
            model.best_estimator_.formula_ = design
        return model

    @classmethod
    def _read_bars(cls, bars: list[tuple[str, str]], data: pd.DataFrame) -> dict[str, str]:
        """Columns of the data that ``fit`` takes by name; random effects are for mixed models."""
        if bars:
            raise ValueError(
                f"'({bars[0][0]} | {bars[0][1]})' asks for random effects: use "
                "MixedTobitRegressor.from_formula"
            )
        return {}


def _read_formula(formula: str, data: pd.DataFrame, **state: Any) -> tuple[tuple[str, ...], Any]:
    """The outcomes of a formula, and the encoding of its features as far as it is known."""
    formulaic = require("formulaic", "formula")
    # What the dot stands for: all columns that are not outcomes.
    context = {"__formulaic_variables_available__": list(data.columns)}
    if len(formula) > _LONGEST:
        raise ValueError(f"the formula has {len(formula)} characters; at most {_LONGEST} are read")
    try:
        _check_size(formula, n_columns=data.shape[1])
        parsed = formulaic.Formula.from_spec(formula, context=context)
    except (formulaic.errors.FormulaicError, SyntaxError) as error:
        reason = str(error).split("\n")[0]  # the rest is coloured for a terminal
        raise ValueError(f"the formula {shown(formula)} cannot be read: {reason}") from None
    except RecursionError:
        raise ValueError(f"the formula {shown(formula)} is nested too deeply") from None
    sides = getattr(parsed, "lhs", None), getattr(parsed, "rhs", None)
    if not all(isinstance(side, formulaic.SimpleFormula) for side in sides):
        raise ValueError(
            f"a formula has outcomes, one ~ and features, as in 'MMSE ~ age + C(site)'; "
            f"got {formula!r}"
        )
    targets = tuple(str(term).strip("`") for term in parsed.lhs)
    for name in targets:
        if name not in data.columns:
            raise ValueError(
                f"the outcome {name!r} is not a column of the data; transform outcomes before, so "
                "that their bounds are in their own units"
            )
    return targets, formulaic.ModelSpec(parsed.rhs, output="pandas", na_action="ignore", **state)


def _check_size(formula: str, n_columns: int) -> None:
    """Refuse a formula with too many terms before they are multiplied out.

    A term counts each time it arises: ``a * b`` is three, ``(a + b) ** 3`` is eight.
    """
    parser = require("formulaic.parser", "formula").DefaultFormulaParser()
    counts: dict[int, float] = {}
    waiting: list[tuple[Any, bool]] = [(parser.get_ast(formula), False)]
    while waiting:
        node, counted = waiting.pop()
        if not hasattr(node, "operator"):
            counts[id(node)] = 1
        elif not counted:
            waiting.append((node, True))
            waiting.extend((each, False) for each in node.args)
        else:
            sizes = [counts[id(each)] for each in node.args] or [n_columns]  # the dot
            counts[id(node)] = size = _terms(node, sizes)
            if size > _MOST_TERMS:
                raise ValueError(
                    f"the formula {shown(formula)} has more than {_MOST_TERMS} terms; pass many "
                    "features as a matrix to fit"
                )


def _terms(node: Any, sizes: list[float]) -> float:
    """An upper limit of the number of terms of an operation on so many."""
    first, last = sizes[0], sizes[-1]
    match node.operator.symbol:
        case ":" | "%in%" | "in":
            return first * last
        case "*" | "/":
            return first + last + first * last
        case "**" | "^":
            power = str(node.args[-1])
            return first ** int(power[:4]) if power.isdecimal() else first
    return sum(sizes)


def _columns_of(spec: Any, data: pd.DataFrame) -> list[str]:
    """The raw columns that an encoding reads, in the order of the formula."""
    factors = [factor for term in spec.formula for factor in term.factors]
    return list(dict.fromkeys(name for factor in factors for name in _reads(factor, data)))


def _reads(factor: Any, data: pd.DataFrame) -> tuple[str, ...]:
    """The columns of one factor; code that is more than known functions is refused."""
    match factor.eval_method.value:
        case "lookup":
            return (factor.expr,)
        case "python":
            return columns_read(factor.expr, data.columns, _texts(data))
    return ()


def _texts(data: pd.DataFrame) -> list[str]:
    """The columns that hold texts, categories or anything else but numbers and dates."""
    return [name for name in data.columns if data[name].dtype.kind not in "biufmM"]


def _check_width(spec: Any, data: pd.DataFrame) -> None:
    """Refuse terms whose columns, multiplied out, would fill the memory."""
    factors = {factor.expr: factor for term in spec.formula for factor in term.factors}
    widths = {name: _width(factor, spec, data) for name, factor in factors.items()}
    n_features = sum(math.prod(widths[each.expr] for each in term.factors) for term in spec.formula)
    if n_features > _MOST_FEATURES:
        raise ValueError(
            f"the formula makes {n_features:,} features; at most {_MOST_FEATURES:,} are made"
        )


def _width(factor: Any, spec: Any, data: pd.DataFrame) -> int:
    """At most so many columns are made of a factor."""
    _, encoded = spec.encoder_state.get(factor.expr, (None, {}))
    if "categories" in encoded:
        return len(encoded["categories"])
    learned = spec.transform_state.get(factor.expr, {}).values()
    sizes = [len(each) for each in learned if isinstance(each, list | dict)]
    if any(f"{basis}(" in factor.expr for basis in BASES):
        sizes.append(sum(map(int, re.findall(r"\b\d{1,3}\b", factor.expr))))
    reads, texts = _reads(factor, data), _texts(data)
    levels = [name for name in reads if name in texts or "C(" in factor.expr]
    return max(1, math.prod(data[name].nunique() for name in levels), *sizes)


def _model_matrix(spec: Any, reads: list[str], data: pd.DataFrame) -> Any:
    """The encoded columns, with the errors of formulaic in our words."""
    errors = require("formulaic.errors", "formula")
    check_columns(sorted(reads), data)
    rows = data.reset_index(drop=True)  # encoded levels come back without the index of the data
    try:
        with warnings.catch_warnings(action="error", category=errors.DataMismatchWarning):
            _check_width(spec, rows)
            return spec.get_model_matrix(rows, context={})
    except errors.DataMismatchWarning as mismatch:
        raise ValueError(_name_unseen(spec, data) or str(mismatch)) from None
    except (errors.FormulaicError, *_NOT_EVALUATED) as error:
        raise ValueError(f"the formula cannot be evaluated: {str(error)[:300]}") from None


def _name_unseen(spec: Any, data: pd.DataFrame) -> str | None:
    """Name the column and the levels that the fit did not see."""
    for factor, contrasts in spec.factor_contrasts.items():
        for column in _reads(factor, data):
            unseen = sorted(set(data[column]) - set(contrasts.levels), key=str)
            if unseen:
                return (
                    f"column {column!r} has the level(s) {', '.join(map(repr, unseen))}, which "
                    f"the fit did not see; it saw {', '.join(map(repr, contrasts.levels))}"
                )
    return None


def check_columns(names: list[str], data: pd.DataFrame) -> None:
    """Every column of the formula is there, without gaps."""
    absent = [name for name in names if name not in data.columns]
    if absent:
        raise ValueError(
            f"the formula needs the column(s) {', '.join(map(shown, absent))}, which the data do "
            "not have"
        )
    for name in names:
        missing = data[name].isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"column {name!r} is missing in row {int(missing.argmax())} ({int(missing.sum())} "
                "such rows); outcomes may be missing, features may not: drop or impute them first"
            )


# In a file: the text, the levels of categories, and learned constants.

_BY_FIELDS = values.by_fields(FormulaDesign)


def _take(design: FormulaDesign) -> dict[str, Any]:
    """Fields of a design; ``TypeError`` where it cannot be made of them again."""
    taken = _BY_FIELDS.take(design)
    try:
        same = FormulaDesign(**taken).spec.column_names == design.spec.column_names
    except ModelFileError:
        same = False
    if not same:
        raise TypeError(
            f"the formula {design.formula!r} cannot be saved: what it learned from the data cannot "
            "be stored as levels and constants; compute its columns beforehand"
        )
    return taken


SAVED_FORMULA = replace(_BY_FIELDS, take=_take)
