"""Every class whose objects a model file may hold, by a name that stays.

A file knows classes by these names alone, and makes nothing else. To rename a class, keep its
name here. A field that is added needs a default, with which older files are read; a field that
goes, or changes its meaning, needs a new version of the state (``_state.py``).
"""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import GroupKFold, KFold

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators._conformal import IntervalCalibration
from deeptobit.estimators._formula import FormulaDesign
from deeptobit.estimators._low_rank import RowsBehind
from deeptobit.estimators._network import SubspaceNetworkRegressor
from deeptobit.estimators._network_cv import SubspaceNetworkCV
from deeptobit.estimators._nonconformity import TargetScores
from deeptobit.estimators._subspace import SubspaceTobitRegressor
from deeptobit.estimators._tobit import TobitRegressor
from deeptobit.estimators.saving._formula import StoredFormula, make_formula, take_formula
from deeptobit.estimators.saving._makers import (
    of_attributes,
    of_estimator,
    of_parameters,
    of_record,
)
from deeptobit.estimators.saving._random import make_random_state, take_random_state
from deeptobit.estimators.saving._values import SavedClass
from deeptobit.kernels._online_types import Iterate
from deeptobit.likelihood import (
    Gaussian,
    Logistic,
    Noise,
    NoiseByTask,
    ScoreGrid,
    Spread,
    StudentT,
    SymmetricNoise,
    TwoPiece,
)
from deeptobit.network import ContinuedNetwork, NetworkLayer, NetworkStream
from deeptobit.solvers import RecursiveTobit, Step
from deeptobit.solvers.online import (
    OnlineResult,
    OnlineSettings,
    OnlineSolver,
    Pending,
    RawRows,
    Record,
)
from deeptobit.solvers.online._adaptive import AdaptiveLearner
from deeptobit.solvers.online._evidence import Evidence
from deeptobit.solvers.online._history import History
from deeptobit.solvers.online._metric import FeatureMetric
from deeptobit.solvers.online._null import NullModel
from deeptobit.solvers.online._plain import PlainLearner
from deeptobit.solvers.online._units import Units

_STREAMS = {
    "OnlineSolver": of_attributes(
        OnlineSolver,
        settings=OnlineSettings,
        n_features=int,
        n_tasks=int,
        n_seen=int,
        _block_rows=int,
        _n_processed=int,
        _loss=float,
        _weight=float,
        _pending=Pending,
        _history=History,
        _units=Units,
        _given=OnlineResult | None,
        _learner=AdaptiveLearner | PlainLearner | None,
    ),
    "NetworkStream": of_attributes(
        NetworkStream,
        n_seen=int,
        _settings=OnlineSettings,
        _bounds=tuple[FloatArray, FloatArray],
        _skip_connection=bool,
        _solvers=list[OnlineSolver],
        learned_layers=tuple[NetworkLayer, ...],
        _losses=FloatArray,
        _segment=int,
        _pending=Pending,
    ),
    "ContinuedNetwork": of_attributes(
        ContinuedNetwork,
        _hidden=tuple[NetworkLayer, ...],
        _last=RecursiveTobit,
        _skip_connection=bool,
        _bounds=tuple[FloatArray, FloatArray],
    ),
    "RecursiveTobit": of_attributes(
        RecursiveTobit,
        _rank=int,
        _noise=Noise,
        _fit_intercept=bool,
        _learns_sigma=bool,
        _active=BoolArray,
        _W=FloatArray,
        _mean_squares=FloatArray,
        _sigma=FloatArray,
        _n=float,
        _moments=FloatArray | None,
        _pending=Pending,
    ),
}

_RECORDS: tuple[type, ...] = (
    *(NetworkLayer, OnlineResult, RowsBehind, Record, Step, IntervalCalibration, TargetScores),
    *(OnlineSettings, AdaptiveLearner, PlainLearner, Iterate, Units, NullModel),
    *(FeatureMetric, Evidence, History, Pending, RawRows),
)

ESTIMATORS: tuple[type, ...] = (
    TobitRegressor,
    SubspaceTobitRegressor,
    SubspaceNetworkRegressor,
    SubspaceNetworkCV,
)

_SEED = int | np.random.RandomState | None
CLASSES: dict[str, SavedClass] = {
    "Gaussian": of_parameters(Gaussian),
    "Logistic": of_parameters(Logistic),
    "StudentT": of_parameters(StudentT, df=float),
    "TwoPiece": of_parameters(TwoPiece, base=SymmetricNoise, skew=float),
    "NoiseByTask": of_parameters(
        NoiseByTask, families=tuple[Noise, ...], spread=Spread | None, grid=ScoreGrid | None
    ),
    "ScoreGrid": of_parameters(ScoreGrid, step=FloatArray, origin=FloatArray),
    "Spread": of_parameters(Spread, growth=FloatArray, centre=FloatArray, width=FloatArray),
    "KFold": of_parameters(KFold, n_splits=int, shuffle=bool, random_state=_SEED),
    "GroupKFold": of_parameters(GroupKFold, n_splits=int, shuffle=bool, random_state=_SEED),
    "RandomState": SavedClass((np.random.RandomState,), take_random_state, make_random_state),
    "FormulaDesign": SavedClass((FormulaDesign, StoredFormula), take_formula, make_formula),
    **{cls.__name__: of_record(cls) for cls in _RECORDS},
    **_STREAMS,
    **{cls.__name__: of_estimator(cls) for cls in ESTIMATORS},
}
