"""Every peer that can run here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.race.peer import Peer
from benchmarks.race.peers import PEERS
from deeptobit.metrics import centred_anmse
from tests.benchmarks.race.peers.problems import hostile, linear

_WORST = 0.45  # linear models reach 0.2; trees on 150 rows come less close
_KNOW_NO_BOUND = {"NGBoost", "quantile forest"}
_SLOW = {"NGBoost", "lifelines log-normal AFT", "R VGAM reduced-rank Tobit"}
_SLOW |= {"LightGBM", "XGBoost", "CatBoost MultiRMSE", "quantile forest", "RealMLP", "TabM"}
_SLOW |= {"random forest", "MLP"}  # the other methods of scikit-learn stay


def _marked(peer: Peer) -> Any:
    return pytest.param(peer, marks=[pytest.mark.slow] if peer.name in _SLOW else [], id=peer.name)


@pytest.fixture(params=map(_marked, PEERS.values()))
def peer(request: pytest.FixtureRequest) -> Peer:
    peer: Peer = request.param
    reason = peer.available()
    if reason is not None:
        pytest.skip(reason)
    return peer


def test_learns_what_is_there(peer: Peer) -> None:
    known = linear(missing=5)
    fitted = peer.fit(known.problem)
    forecast = fitted.predict(known.X)
    point = np.clip(forecast.point, known.problem.lower, known.problem.upper)
    assert float(centred_anmse(known.Y, point)) < _WORST
    if forecast.latent is None:
        assert fitted.held_out is not None
        assert fitted.held_out.shape == known.problem.Y.shape
        assert np.isfinite(fitted.held_out).all()
    elif peer.name not in _KNOW_NO_BOUND:
        at_floor = np.asarray(forecast.latent.cdf(known.problem.lower))[:, 0]
        share = float(np.mean(known.Y[:, 0] <= known.problem.lower[0]))
        assert abs(at_floor.mean() - share) < 0.08


def test_survives_tasks_that_are_hardly_ever_off_a_bound(peer: Peer) -> None:
    problem = hostile()
    forecast = peer.fit(problem).predict(problem.X)
    assert np.isfinite(forecast.point).all()
    if forecast.latent is not None:
        assert np.isfinite(forecast.latent.ppf(0.5)).all()
