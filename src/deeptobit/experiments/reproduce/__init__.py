"""The paper's figures, tables and claims, computed again: ``deeptobit reproduce``."""

from deeptobit.experiments.reproduce._context import Context, Progress
from deeptobit.experiments.reproduce._registry import NAMES, finished, reproduce
from deeptobit.experiments.reproduce._scales import PAPER, SMALL, Scale
from deeptobit.experiments.reproduce._section import Claim, FigureOf, Section, TableOf, Verdict
from deeptobit.experiments.reproduce._verdicts import Judgement, verdict_over_repeats

__all__ = [
    "NAMES",
    "PAPER",
    "SMALL",
    "Claim",
    "Context",
    "FigureOf",
    "Judgement",
    "Progress",
    "Scale",
    "Section",
    "TableOf",
    "Verdict",
    "finished",
    "reproduce",
    "verdict_over_repeats",
]
