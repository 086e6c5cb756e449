"""Repeated visits: evidence of people under random effects, its maximum, and what it predicts."""

from deeptobit.mixed.evidence import Effects, MixedProblem, Point, Visits, evidence
from deeptobit.mixed.inference import (
    EffectUnits,
    FittedMixed,
    MixedUnits,
    reported_terms,
)
from deeptobit.mixed.people import KnownPeople, by_person, person_loads
from deeptobit.mixed.solve import (
    SIGMA_FLOOR,
    Solution,
    Structure,
    choose_structure,
    cross_fit,
    fit_structure,
    solve,
)

__all__ = [
    "SIGMA_FLOOR",
    "EffectUnits",
    "Effects",
    "FittedMixed",
    "KnownPeople",
    "MixedProblem",
    "MixedUnits",
    "Point",
    "Solution",
    "Structure",
    "Visits",
    "by_person",
    "choose_structure",
    "cross_fit",
    "evidence",
    "fit_structure",
    "person_loads",
    "reported_terms",
    "solve",
]
