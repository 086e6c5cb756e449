"""The machinery behind the tables, on problems that take a second."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from pandas.testing import assert_frame_equal

from deeptobit import CensoredTargets, SubspaceNetworkRegressor
from deeptobit.app.study import EvaluationData, Protocol, Regression
from paper.arrays import FloatArray
from paper.baselines import LeastSquaresBaseline
from paper.comparison import Comparison, claim_ahead, compare, table_by_share
from paper.methods import Method, reading
from paper.section import Context

SPLITS = Protocol(train_shares=(0.5, 0.7), repeats=2)
VARIABLE = ["seconds", "warnings"]


@dataclass
class Shrunk:
    """The mean of the training rows times a factor; remembers which rows it saw."""

    factor: float

    def fit(self, X: FloatArray, y: CensoredTargets) -> "Shrunk":
        """Learn the means."""
        self.seen = set(X[:, 0].tolist())
        self.mean = np.nanmean(y.values, axis=0)
        return self

    def predict(self, X: FloatArray, kind: str) -> FloatArray:
        """The same for everyone, and never for a row that it was fitted to."""
        assert not self.seen & set(X[:, 0].tolist())
        return np.tile(self.factor * self.mean, (len(X), 1))


def _shrunk(*factors: float) -> Method:
    return Method(tuple(map(Shrunk, factors)), {"shrunk": reading("clip")})


def _ridge() -> Method:
    rows = {"ridge": reading("latent"), "ridge, clipped": reading("clip")}
    return Method((Regression("ridge"),), rows)


def _data() -> EvaluationData:
    """Three scores from 0 to 4, with gaps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    latent = 2.0 + X @ rng.standard_normal((4, 3)) + rng.standard_normal((80, 3))
    Y = np.clip(latent, 0.0, 4.0)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    return EvaluationData("small", X, CensoredTargets.from_bounds(Y, 0.0, 4.0))


def _comparison(methods: dict[str, Method] | None = None, choice: Any = "honest") -> Comparison:
    methods = methods or {"shrunk": _shrunk(0.0, 0.5, 1.0, 30.0), "ridge": _ridge()}
    return Comparison("test", _data(), methods, SPLITS, choice)


@cache
def _compared() -> pd.DataFrame:
    return compare(_comparison(), Context())


def _steady(results: pd.DataFrame) -> pd.DataFrame:
    return results.drop(columns=VARIABLE)


def test_all_methods_see_the_same_rows() -> None:
    twice = compare(_comparison({"a": _shrunk(0.5), "b": _shrunk(0.5)}), Context())
    first, second = (twice[twice["method"] == name] for name in "ab")
    assert first["anmse"].to_list() == second["anmse"].to_list()
    assert first["anmse"].nunique() == 4
    assert twice["n_train"].to_list() == [40] * 4 + [56] * 4


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_the_number_of_jobs_does_not_matter(backend: str) -> None:
    grid = tuple(SubspaceNetworkRegressor(2, 1, alpha=alpha) for alpha in (0.1, 1.0))
    methods = {"ridge": _ridge(), "SN": Method(grid, {"SN": reading("clip")})}
    comparison = replace(_comparison(methods), protocol=replace(SPLITS, train_shares=(0.5,)))
    with parallel_config(backend):
        one, two = (compare(comparison, Context(n_jobs=n)) for n in (1, 2))
    assert_frame_equal(_steady(one), _steady(two))


def test_another_seed_gives_other_splits() -> None:
    other = replace(_comparison(), protocol=replace(SPLITS, seed=1))
    assert (_compared()["anmse"] != compare(other, Context())["anmse"]).all()


def test_the_best_test_value_is_never_behind_the_honest_one() -> None:
    grid = {"shrunk": _shrunk(0.0, 0.8, 0.9, 1.0, 1.1, 1.2)}
    honest, paper = (
        compare(_comparison(grid, choice), Context()) for choice in ("honest", "paper")
    )
    assert (paper["anmse"] <= honest["anmse"]).all()
    assert (paper["anmse"] < honest["anmse"]).any()


def test_validation_rows_choose_and_are_then_learned_from() -> None:
    results = compare(_comparison({"shrunk": _shrunk(30.0, 1.0)}), Context())
    assert set(results["settings"]) == {"Shrunk(factor=1.0)"}
    alone = compare(_comparison({"shrunk": _shrunk(1.0)}), Context())
    assert results["anmse"].to_list() == alone["anmse"].to_list()


def test_a_method_that_runs_away_is_not_chosen() -> None:
    results = compare(_comparison({"shrunk": _shrunk(np.inf, 1.0)}), Context())
    assert set(results["settings"]) == {"Shrunk(factor=1.0)"}
    lost = compare(_comparison({"shrunk": _shrunk(np.inf)}), Context())
    assert np.isposinf(lost["anmse"]).all()


def test_baselines_do_not_learn_from_test_rows_that_choose_for_them() -> None:
    """Noise has no slope: whoever learned from the test rows would predict them."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 40)), 1.0 + rng.standard_normal((60, 2))
    data = EvaluationData("noise", X, CensoredTargets.from_bounds(Y))
    model = Method((LeastSquaresBaseline(),), {"least squares": reading("latent")})
    protocol = Protocol(train_shares=(0.8,), repeats=3)
    for choice in ("honest", "paper"):
        results = compare(Comparison("t", data, {"m": model}, protocol, choice), Context())
        assert (results["centred_anmse"] > 1.0).all()


def test_a_stopped_run_continues_and_says_so(tmp_path: Path) -> None:
    heard: list[tuple[int, int, str]] = []

    class StoppedError(Exception):
        pass

    def stop(done: int, total: int, label: str) -> None:
        if done == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        compare(_comparison(), Context(store=tmp_path, progress=stop))
    listen = Context(store=tmp_path, progress=lambda *news: heard.append(news))
    found = compare(_comparison(), listen)
    assert heard[0] == (3, 8, "test: continued where it stopped")
    assert [done for done, _, _ in heard[1:]] == [4, 5, 6, 7, 8]
    assert_frame_equal(_steady(found), _steady(_compared()))
    heard.clear()
    compare(_comparison(choice="paper"), listen)
    assert heard[0][0] == 1  # other settings start anew, beside the others


def test_results_record_how_they_came_about() -> None:
    results = _compared()
    assert (results["seed"] == 0).all()
    assert (results["seconds"] > 0.0).all()
    assert all('"scikit-learn"' in used and '"deeptobit"' in used for used in results["versions"])


def test_a_table_has_means_spreads_and_the_papers_values() -> None:
    results = _compared()
    paper = {"ridge": {0.5: (0.2, 0.01), 0.6: (9.0, 9.0)}, "ridge, clipped": {0.5: (0.1, 0.02)}}
    frame = table_by_share(results, "", paper=paper, reference="ridge").frame
    assert frame["method"].to_list() == ["shrunk", "ridge", "ridge, clipped"]
    values = results[(results["row"] == "ridge") & (results["share"] == 0.5)]["anmse"]
    assert frame["50%"][1] == f"{values.mean():.4f} ({values.std():.4f})"
    assert frame["50%, paper"].to_list() == ["–", "0.2000 (0.0100)", "0.1000 (0.0200)"]
    assert frame["70%, paper"].to_list() == ["–", "–", "–"]
    assert frame["paper, over ridge"].to_list() == ["–", "1.000", "0.500"]


def _made_up(errors: dict[str, list[float]]) -> pd.DataFrame:
    lines = [
        {"share": share, "repeat": repeat, "row": row, "anmse": error, "n_train": 4, "n_test": 1}
        for share in (0.4, 0.8)
        for row, values in errors.items()
        for repeat, error in enumerate(values)
    ]
    return pd.DataFrame(lines)


def _verdict(errors: dict[str, list[float]], **settings: Any) -> Any:
    return claim_ahead(_made_up(errors), [("a", "b")], text="", paper="", **settings)


def test_verdicts_follow_the_errors() -> None:
    low, high, same = [0.10, 0.11, 0.10], [0.20, 0.21, 0.22], [0.12, 0.09, 0.11]
    assert _verdict({"a": low, "b": high}).verdict == "holds"
    lost = _verdict({"a": high, "b": low})
    assert lost.verdict == "does not hold"
    assert "a and b at 40% (0.2100 against 0.1033)" in lost.ours
    assert _verdict({"a": low, "b": same}).verdict == "cannot be told"
    close = [0.098, 0.108, 0.0981]
    assert _verdict({"a": low, "b": close}, margin=1.05).verdict == "holds"
    assert _verdict({"a": low, "b": close}).verdict == "does not hold"


def test_one_pair_that_fails_fails_the_claim() -> None:
    low, high = [0.10, 0.11, 0.10], [0.20, 0.21, 0.22]
    results = _made_up({"a": low, "b": high, "c": [0.05, 0.06, 0.05]})
    claim = claim_ahead(results, [("a", "b"), ("a", "c")], text="", paper="")
    assert claim.verdict == "does not hold"
    assert "Holds in 2 of 4 comparisons" in claim.ours


def test_a_divergence_is_an_entry_and_is_ahead_of_nothing() -> None:
    fine, lost, all_lost = [0.1, 0.11, 0.1], [0.05, np.inf, 0.05], [np.inf] * 3
    results = _made_up({"fine": fine, "lost": lost, "all lost": all_lost})
    frame = table_by_share(results, "", paper={}, reference="fine").frame
    assert frame["40%"].to_list() == ["0.1033 (0.0058)", "diverged in 1 of 3", "diverged in 3 of 3"]
    assert frame["over fine"].to_list() == ["1.000", "diverged", "diverged"]

    def claim(first: str, second: str) -> Any:
        return claim_ahead(results, [(first, second)], text="", paper="", row="r", by="us")

    assert claim("lost", "fine").verdict == "does not hold"
    assert claim("all lost", "lost").verdict == "does not hold"
    assert claim("fine", "all lost").verdict == "holds"
    assert claim("fine", "lost").verdict == "does not hold"  # behind where the other is finite
    assert "lost and fine at 40% (diverged against 0.1033)" in claim("lost", "fine").ours
    assert (claim("fine", "lost").row, claim("fine", "lost").by) == ("r", "us")


def test_trials_choose_in_place_of_what_they_stand_for() -> None:
    grid, trials = tuple(map(Shrunk, (0.0, 1.0))), tuple(map(Shrunk, (1.0, 30.0)))
    method = Method(grid, {"shrunk": reading("clip")}, trials)
    for choice in ("honest", "paper"):
        results = compare(_comparison({"shrunk": method}, choice), Context())
        assert set(results["settings"]) == {"Shrunk(factor=0.0)"}
        assert (results["anmse"] == 1.0).all()
