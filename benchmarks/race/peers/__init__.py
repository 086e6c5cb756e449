"""Methods that people would use instead, each in its best known use."""

from functools import partial

from benchmarks.race.peer import Peer
from benchmarks.race.peers.boosted import fit_catboost, fit_lightgbm, fit_xgboost
from benchmarks.race.peers.grabit import fit_grabit
from benchmarks.race.peers.hist_boosting import fit_hist_boosting
from benchmarks.race.peers.lifelines_aft import fit_lifelines
from benchmarks.race.peers.modern import (
    fit_pytabkit,
    fit_quantile_forest,
    fit_tabicl,
    fit_tabpfn,
    with_weights,
)
from benchmarks.race.peers.ngboost_normal import fit_ngboost
from benchmarks.race.peers.packages import importable
from benchmarks.race.peers.r_tobit import fit_aer, fit_vgam, r_has
from benchmarks.race.peers.scikit_learn import (
    fit_forest,
    fit_lasso,
    fit_mlp,
    fit_multi_task_lasso,
    fit_ridge,
)
from benchmarks.race.peers.xgboost_aft import fit_aft
from benchmarks.race.peers.xgboost_squared import fit_multi_target

_ALL = [
    Peer("ridge", fit_ridge),
    Peer("lasso", fit_lasso),
    Peer("multi-task lasso", fit_multi_task_lasso),
    Peer("random forest", fit_forest),
    Peer("hist gradient boosting", fit_hist_boosting),
    Peer("MLP", fit_mlp),
    Peer("LightGBM", fit_lightgbm, ("lightgbm",), importable("lightgbm")),
    Peer("XGBoost", fit_xgboost, ("xgboost",), importable("xgboost")),
    Peer("CatBoost MultiRMSE", fit_catboost, ("catboost",), importable("catboost")),
    Peer(
        "quantile forest",
        fit_quantile_forest,
        ("quantile_forest",),
        importable("quantile_forest"),
    ),
    Peer(
        "RealMLP",
        partial(fit_pytabkit, name="RealMLP_TD_Regressor"),
        ("pytabkit",),
        importable("pytabkit"),
    ),
    Peer(
        "TabM",
        partial(fit_pytabkit, name="TabM_D_Regressor"),
        ("pytabkit",),
        importable("pytabkit"),
    ),
    Peer("TabPFN", fit_tabpfn, ("tabpfn",), with_weights("tabpfn")),
    Peer("TabICL", fit_tabicl, ("tabicl",), with_weights("tabicl")),
    Peer("XGBoost multi-target", fit_multi_target, ("xgboost",), importable("xgboost")),
    Peer("XGBoost AFT", fit_aft, ("xgboost",), importable("xgboost")),
    Peer("GPBoost Tobit", fit_grabit, ("gpboost",), importable("gpboost")),
    Peer("NGBoost", fit_ngboost, ("ngboost",), importable("ngboost")),
    Peer("lifelines log-normal AFT", fit_lifelines, ("lifelines",), importable("lifelines")),
    Peer("R AER tobit", fit_aer, available=r_has("AER")),
    Peer("R VGAM reduced-rank Tobit", fit_vgam, available=r_has("VGAM")),
]

PEERS = {peer.name: peer for peer in _ALL}
