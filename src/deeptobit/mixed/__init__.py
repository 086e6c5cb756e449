"""Repeated visits: evidence of people under random effects, its maximum, and what it predicts."""

from deeptobit.mixed.evidence import Effects as Effects
from deeptobit.mixed.evidence import MixedProblem as MixedProblem
from deeptobit.mixed.evidence import Point as Point
from deeptobit.mixed.evidence import Visits as Visits
from deeptobit.mixed.evidence import evidence as evidence
from deeptobit.mixed.inference import EffectUnits as EffectUnits
from deeptobit.mixed.inference import FittedMixed as FittedMixed
from deeptobit.mixed.inference import MixedUnits as MixedUnits
from deeptobit.mixed.inference import reported_terms as reported_terms
from deeptobit.mixed.people import KnownPeople as KnownPeople
from deeptobit.mixed.people import by_person as by_person
from deeptobit.mixed.people import person_loads as person_loads
from deeptobit.mixed.solve import SIGMA_FLOOR as SIGMA_FLOOR
from deeptobit.mixed.solve import Solution as Solution
from deeptobit.mixed.solve import Structure as Structure
from deeptobit.mixed.solve import choose_structure as choose_structure
from deeptobit.mixed.solve import cross_fit as cross_fit
from deeptobit.mixed.solve import fit_structure as fit_structure
from deeptobit.mixed.solve import solve as solve
