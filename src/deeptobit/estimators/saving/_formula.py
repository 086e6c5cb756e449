"""A formula's encoding as plain state: the text, the levels of categories, learned constants.

formulaic's own objects are not stored. A formula from a file is left alone until raw columns are to
be encoded. Then its text is read as if a user had typed it, with the same refusal of everything but
arithmetic and known functions, and is applied to a table without rows to find its columns.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from deeptobit.estimators._formula import FormulaDesign, _columns_by_factor, _outcomes, _parse
from deeptobit.estimators.saving._types import fits
from deeptobit.exceptions import ModelFileError
from deeptobit.extras import require

_FIELDS = {
    "formula": str,
    "targets": tuple[str, ...],
    "columns": list[str],
    "kinds": dict[str, str],
    "levels": dict[str, list[Any]],
    "constants": dict[str, dict[Any, Any]],
}


class StoredFormula(FormulaDesign):
    """A design from a file, made on first use.

    Parameters
    ----------
    fields : dict
        ``formula`` and ``targets``; the raw ``columns`` it reads; the ``kinds`` of its factors,
        numerical or categorical; ``levels`` of the latter; ``constants`` of ``center`` and others.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        vars(self).update(formula=fields["formula"], targets=fields["targets"], fields=fields)

    @cached_property
    def spec(self) -> Any:
        """The columns and their encoding, for formulaic."""
        return self._design.spec

    @cached_property
    def reads(self) -> dict[str, tuple[str, ...]]:
        """The columns that each factor reads."""
        return self._design.reads

    @cached_property
    def _design(self) -> FormulaDesign:
        require("formulaic", "formula")
        try:
            return _design(**vars(self)["fields"])
        except Exception as error:  # whatever formulaic makes of a text that is not a formula
            raise ModelFileError(f"the stored formula {self.formula!r} fails: {error}") from None


def take_formula(design: FormulaDesign) -> dict[str, Any]:
    """Fields of a design; ``TypeError`` where it cannot be made of them again."""
    spec = design.spec
    factors = [factor.expr for term in spec.formula for factor in term.factors]
    columns = [name for factor in factors for name in design.reads.get(factor, ())]
    fields = {
        "formula": design.formula,
        "targets": design.targets,
        "columns": list(dict.fromkeys(columns)),
        "kinds": {factor: kind.value for factor, (kind, _) in spec.encoder_state.items()},
        "levels": {
            factor: list(state["categories"])
            for factor, (_, state) in spec.encoder_state.items()
            if "categories" in state
        },
        "constants": spec.transform_state,
    }
    try:
        same = StoredFormula(fields).spec.column_names == spec.column_names
    except ModelFileError:
        same = False
    if not same:
        raise TypeError(
            f"the formula {design.formula!r} cannot be saved: what it learned from the data cannot "
            "be told in levels and constants; compute its columns beforehand"
        )
    return fields


def make_formula(fields: dict[str, Any]) -> StoredFormula:
    """The design of these fields."""
    if fields.keys() != _FIELDS.keys() or not all(
        fits(fields[name], hint) for name, hint in _FIELDS.items()
    ):
        raise ValueError("it is incomplete")
    return StoredFormula(fields)


def _design(
    formula: str,
    targets: tuple[str, ...],
    columns: list[str],
    kinds: dict[str, str],
    levels: dict[str, list[Any]],
    constants: dict[str, dict[Any, Any]],
) -> FormulaDesign:
    import pandas as pd

    as_kind = require("formulaic.parser.types", "formula").Factor.Kind
    rows = pd.DataFrame(
        {
            name: pd.Series([], dtype=object if kinds.get(name) == "categorical" else float)
            for name in (*targets, *columns)
        }
    )
    parsed = _parse(formula, rows)
    spec = require("formulaic", "formula").ModelSpec(
        parsed.rhs,
        output="pandas",
        na_action="ignore",
        transform_state={factor: dict(state) for factor, state in constants.items()},
        encoder_state={
            factor: (as_kind(kind), {"categories": levels[factor]} if factor in levels else {})
            for factor, kind in kinds.items()
        },
    )
    outcomes, reads = _outcomes(parsed.lhs, rows), _columns_by_factor(spec, rows)
    design = FormulaDesign(formula, outcomes, reads, spec)
    return replace(design, spec=design._materialise(rows).model_spec)
