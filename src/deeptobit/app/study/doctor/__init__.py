"""The doctor: what can be wrong with a study and its table, and what mends it."""

from collections.abc import Iterator

import pandas as pd

from deeptobit.app.study.config import Study
from deeptobit.app.study.data import Encoder
from deeptobit.app.study.doctor import features, leaks, people, reading, repair, values
from deeptobit.app.study.doctor.leaks import collinear_in
from deeptobit.app.study.doctor.registry import (
    RULES,
    Case,
    Edit,
    Finding,
    Rule,
    diagnose,
    examine,
    in_order,
    refuse,
)
from deeptobit.app.study.doctor.repair import choose, edit_study
from deeptobit.app.study.doctor.values import bounds_of_targets, codes_of_table, guess_unit
from deeptobit.targets import CensoredTargets

__all__ = [
    "RULES",
    "Case",
    "Edit",
    "Finding",
    "Rule",
    "choose",
    "codes_of_table",
    "diagnose",
    "edit_study",
    "examine",
    "features",
    "find_in_sample",
    "guess_unit",
    "in_order",
    "leaks",
    "people",
    "reading",
    "refuse",
    "repair",
    "values",
]


def find_in_sample(
    study: Study, X: pd.DataFrame, targets: CensoredTargets, encoder: Encoder
) -> Iterator[Finding]:
    """What a sample of the rows shows: bounds that are not declared, collinear features."""
    yield from bounds_of_targets(study, targets)
    yield from collinear_in(X, encoder)
