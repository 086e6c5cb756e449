"""The doctor: what can be wrong with a study and its table, and what mends it."""

from deeptobit.app.study.doctor import features
from deeptobit.app.study.doctor.numbers import UNITS, guess_unit
from deeptobit.app.study.doctor.registry import (
    RULES,
    Finding,
    choose,
    diagnose,
    edit_study,
    examine,
    refuse,
)
from deeptobit.app.study.doctor.values import codes_of_table

__all__ = [
    "RULES",
    "UNITS",
    "Finding",
    "choose",
    "codes_of_table",
    "diagnose",
    "edit_study",
    "examine",
    "features",
    "guess_unit",
    "refuse",
]
