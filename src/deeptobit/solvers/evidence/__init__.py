"""Empirical Bayes for one layer: the prior is learned from the evidence."""

from deeptobit.solvers.evidence._em import EvidenceState, Sharing, fit_coefficients, start
from deeptobit.solvers.evidence._path import EvidenceMember, evidence_path
from deeptobit.solvers.evidence._posterior import Posterior
from deeptobit.solvers.evidence._problem import EvidenceProblem
from deeptobit.solvers.evidence._spectrum import Spectrum

__all__ = [
    "EvidenceMember",
    "EvidenceProblem",
    "EvidenceState",
    "Posterior",
    "Sharing",
    "Spectrum",
    "evidence_path",
    "fit_coefficients",
    "start",
]
