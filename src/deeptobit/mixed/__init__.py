"""Repeated visits: evidence of people under random effects, its maximum, and what it predicts."""

from deeptobit.mixed.choose import Structure, choose_structure, fit_structure
from deeptobit.mixed.evidence import Effects, MixedProblem, Point, Sites, Visits, evidence
from deeptobit.mixed.inference import FittedMixed
from deeptobit.mixed.people import KnownPeople, Posterior, by_person, person_loads, posterior
from deeptobit.mixed.solve import SIGMA_FLOOR, Solution, cross_fit, solve, start
from deeptobit.mixed.units import EffectUnits, MixedUnits, beyond_the_bound

__all__ = [
    "SIGMA_FLOOR",
    "EffectUnits",
    "Effects",
    "FittedMixed",
    "KnownPeople",
    "MixedProblem",
    "MixedUnits",
    "Point",
    "Posterior",
    "Sites",
    "Solution",
    "Structure",
    "Visits",
    "beyond_the_bound",
    "by_person",
    "choose_structure",
    "cross_fit",
    "evidence",
    "fit_structure",
    "person_loads",
    "posterior",
    "solve",
    "start",
]
