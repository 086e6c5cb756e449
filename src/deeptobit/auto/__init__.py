"""TODO."""

from deeptobit.auto.evidence import EvidenceProblem, Posterior, Spectrum
from deeptobit.auto.folds import Fold, HeldOut, Scoring, check_folds, read_folds
from deeptobit.auto.noise import TAILS, carry_quartiles, fit_errors, held_out_errors
from deeptobit.auto.path import (
    EvidenceMember,
    EvidenceState,
    Sharing,
    evidence_path,
    fit_coefficients,
    start,
)
from deeptobit.auto.recalibration import HeldOutScores, Line
from deeptobit.auto.stack import EvidenceStack, fit_stack

__all__ = [
    "TAILS",
    "EvidenceMember",
    "EvidenceProblem",
    "EvidenceStack",
    "EvidenceState",
    "Fold",
    "HeldOut",
    "HeldOutScores",
    "Line",
    "Posterior",
    "Scoring",
    "Sharing",
    "Spectrum",
    "carry_quartiles",
    "check_folds",
    "evidence_path",
    "fit_coefficients",
    "fit_errors",
    "fit_stack",
    "held_out_errors",
    "read_folds",
    "start",
]
