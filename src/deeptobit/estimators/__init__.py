"""Estimators: they validate, choose, call and store."""

import deeptobit.estimators.saving  # noqa: F401  (registers what model files may hold)
from deeptobit.estimators.auto import AutoTobitRegressor as AutoTobitRegressor
from deeptobit.estimators.mixed import MixedTobitRegressor as MixedTobitRegressor
from deeptobit.estimators.network import SubspaceNetworkRegressor as SubspaceNetworkRegressor
from deeptobit.estimators.networkcv import SubspaceNetworkCV as SubspaceNetworkCV
from deeptobit.estimators.subspace import SubspaceTobitRegressor as SubspaceTobitRegressor
from deeptobit.estimators.tobit import TobitRegressor as TobitRegressor
from deeptobit.files import estimator_from_state as estimator_from_state
from deeptobit.files import estimator_state as estimator_state
from deeptobit.files import load as load
