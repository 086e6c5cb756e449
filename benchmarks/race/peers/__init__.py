"""Methods that people would use instead, each in its best known use."""

from benchmarks.race.peer import Peer
from benchmarks.race.peers.grabit import fit_grabit
from benchmarks.race.peers.hist_boosting import fit_hist_boosting
from benchmarks.race.peers.lifelines_aft import fit_lifelines
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
    Peer("XGBoost multi-target", fit_multi_target, ("xgboost",), importable("xgboost")),
    Peer("XGBoost AFT", fit_aft, ("xgboost",), importable("xgboost")),
    Peer("GPBoost Tobit", fit_grabit, ("gpboost",), importable("gpboost")),
    Peer("NGBoost", fit_ngboost, ("ngboost",), importable("ngboost")),
    Peer("lifelines log-normal AFT", fit_lifelines, ("lifelines",), importable("lifelines")),
    Peer("R AER tobit", fit_aer, available=r_has("AER")),
    Peer("R VGAM reduced-rank Tobit", fit_vgam, available=r_has("VGAM")),
]

PEERS = {peer.name: peer for peer in _ALL}
