"""Steps that diverge are halved, blocks that no step can learn are left out; both are counted."""

import pytest

from deeptobit.online.adaptive import AdaptiveLearner
from tests.online.problems import is_finite, make, relative_error, stream


@pytest.mark.parametrize("batch_size", [1, 16])
def test_the_guard_of_the_adaptive_steps_repairs_a_broken_metric(batch_size: int) -> None:
    data = stream(4000)
    solver = make(data, batch_size=batch_size)
    solver.learn(data.X[:1024], data.low[:1024], data.high[:1024])
    learner = solver._learner
    assert isinstance(learner, AdaptiveLearner)
    learner.inverse *= 1e8
    learner.spread, learner.whitened_at = 0.0, 1024.0  # no damping, and no new metric for a while
    solver.learn(data.X[1024:], data.low[1024:], data.high[1024:])
    assert solver.history["n_halvings"] > 0
    assert relative_error(solver.result(), data.coef) < 0.2


def test_a_block_that_no_step_can_learn_is_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = stream(1500)
    solver = make(data)
    solver.learn(data.X[:1024], data.low[:1024], data.high[:1024])
    before = solver.history
    monkeypatch.setattr(AdaptiveLearner, "_is_sound", lambda self: False)
    solver.learn(data.X[1024:1300], data.low[1024:1300], data.high[1024:1300])
    monkeypatch.undo()
    solver.learn(data.X[1300:], data.low[1300:], data.high[1300:])
    after = solver.history
    left_out = after["n_blocks_left_out"]
    assert before["n_blocks_left_out"] == 0 < left_out
    assert after["n_halvings"] - before["n_halvings"] >= 4 * left_out
    assert is_finite(solver.result())
