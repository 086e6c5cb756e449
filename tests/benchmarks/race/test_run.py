from __future__ import annotations

import re
import shutil
import time
from functools import partial
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.race import ours
from benchmarks.race.methods import choose, split_by_availability
from benchmarks.race.missing import MISSING
from benchmarks.race.ours import NAME
from benchmarks.race.page import render, render_markdown, render_pictures
from benchmarks.race.peer import Peer
from benchmarks.race.process import run_in_children
from benchmarks.race.run import list_heats, measure_again, run
from benchmarks.race.store import Store
from benchmarks.race.summary import Summary
from benchmarks.race.wanted import wanted
from deeptobit import AutoTobitRegressor
from tests.benchmarks.race.toys import METHODS, fit_ridge, sleep, small_data

Raced = tuple[Store, list[str], pd.DataFrame]
DELETED = {name: peer for name, peer in MISSING.items() if "30" in name}


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory) -> Raced:
    """Two splits of two data sets, what was said, and all results; ours without a network."""
    store, said = Store(tmp_path_factory.mktemp("race")), list[str]()
    heats = list_heats([small_data(), small_data("larger", 90)], METHODS, 2)
    heats += list_heats([small_data()], DELETED, 2)
    with pytest.MonkeyPatch.context() as patch:
        quick = partial(AutoTobitRegressor, members=("stack",), noise="gaussian")
        patch.setattr(ours, "AutoTobitRegressor", quick)
        run(heats, store, at_once=2, limit=60.0, tell=said.append)
    return store, said, store.read([heat.key for heat in heats])


def test_every_fit_leaves_rows(raced: Raced) -> None:
    results = raced[2]
    done = results[results["status"] == "done"]
    rows = done.groupby(["data", "split", "name"]).size()
    assert (rows == 2).all()  # outcomes
    variants = {NAME, "ridge + clipped Gaussian", "ridge + Tobit step"}
    assert set(done["name"]) == variants | {peer.name for peer in DELETED.values()}
    assert done[["crps", "log_score", "coverage", "seconds"]].notna().all(axis=None)
    ours = done[done["name"] == NAME]
    assert ours["centred_anmse"].max() < 0.5


def test_failures_are_kept_and_told(raced: Raced) -> None:
    _, said, results = raced
    failed = results[results["status"] == "failed"].groupby("name")["message"].unique()
    assert failed["failing"].tolist() == ["ArithmeticError: singular\nat step 3"]
    assert failed["crashing"].tolist() == ["ended by SIGKILL"]
    assert sum("failing: ArithmeticError: singular" in line for line in said) == 4


def test_a_race_is_continued(raced: Raced) -> None:
    said = list[str]()
    heats = list_heats([small_data()], {"ridge": METHODS["ridge"]}, 3)
    run(heats, raced[0], at_once=1, limit=60.0, tell=said.append)
    assert said[0] == "2 of 3 fits were done before and are kept"
    assert [re.sub(r"\[.*\] |: .*", "", line) for line in said[1:]] == ["small, split 3, ridge"]


def test_a_slow_method_is_stopped_and_given_up(tmp_path: Path) -> None:
    store, said = Store(tmp_path), list[str]()
    heats = list_heats([small_data()], {"slow": Peer("slow", sleep)}, 4)
    run(heats, store, at_once=1, limit=0.3, tell=said.append)
    assert [line.split(": ")[1] for line in said] == ["over the limit of 0.3 s"]
    assert not any(store.has(heat.key, limit=5.0) for heat in heats)
    assert [store.has(heat.key, limit=0.3) for heat in heats] == [True, False, False, False]
    run(heats, store, at_once=1, limit=0.3, tell=said.append)
    assert said[1:] == ["1 of 4 fits were done before and are kept"]


def test_processor_time_is_limited() -> None:
    def count(end: float) -> int:
        started, number = time.process_time(), 0
        while time.process_time() - started < end:
            number += 1
        return number

    found = dict(run_in_children([0.01, 30.0], count, at_once=2, limit=1.0))
    assert found[0.01].result > 0
    assert (found[30.0].timed_out, found[30.0].failure) == (True, "over the limit of 1 s")


def test_predictions_are_measured_again(raced: Raced) -> None:
    store, _, results = raced
    heats = list_heats([small_data()], METHODS, 2)
    keys = [heat.key for heat in heats if heat.key.method == "ridge"]
    before = store.read(keys)
    for key in keys:
        store.write(key, store.read([key]).assign(crps=np.nan))
    said = list[str]()
    measure_again(heats, store, tell=said.append)
    assert said == ["measuring 2 fits without a distribution of their own again"]
    pd.testing.assert_frame_equal(store.read(keys), before)
    assert len(before) == len(results.query("data == 'small' and method == 'ridge'"))


def test_fits_without_kept_predictions_are_fitted_again(raced: Raced, tmp_path: Path) -> None:
    shutil.copytree(raced[0].folder, tmp_path, dirs_exist_ok=True)
    store, said = Store(tmp_path), list[str]()
    heats = list_heats([small_data()], METHODS, 2)
    before = store.read([heat.key for heat in heats])
    old = next(heat.key for heat in heats if heat.key.method == "ridge")
    store.path(old).with_suffix(".npz").unlink()
    store.write(old, store.read([old]).assign(crps=-1.0))  # of an older error model
    measure_again(heats, store, tell=said.append)
    assert said == [
        "1 fits without kept predictions are forgotten, to be fitted again",
        "measuring 1 fits without a distribution of their own again",
    ]
    assert [heat.key for heat in heats if not store.path(heat.key).exists()] == [old]
    run(heats, store, at_once=2, limit=60.0, tell=lambda _: None)
    assert store.read_points(old) is not None
    cost = ["seconds", "megabytes"]
    again = store.read([heat.key for heat in heats])
    pd.testing.assert_frame_equal(again.drop(columns=cost), before.drop(columns=cost))


def test_summary_and_page(raced: Raced) -> None:
    summary = Summary(raced[2])
    assert summary.data == ["small", "larger"]
    assert summary.plain_names == [NAME, "ridge + clipped Gaussian"]
    by_hand = raced[2].query("data == 'small' and name == @NAME").groupby("split")["crps"].mean()
    assert summary.on("small")["crps"].loc[NAME] == pytest.approx(by_hand.mean())
    ranks = summary.ranks("crps", [*summary.names, "absent"])
    assert (ranks["absent"] == 4.0).all()
    assert (ranks.sum(axis=1) == 10.0).all()
    numbers = list(wanted(summary))
    facts = [("machine", "a <small> one")]
    page = render(summary, numbers, {"VGAM": "R is not installed."}, facts)
    assert "a &lt;small&gt; one" in page
    assert "<script" not in page
    assert all(number.what in unescape(page) for number in numbers)
    text = render_markdown(summary, numbers, {"VGAM": "R is not installed."}, facts)
    assert "- failing on small, 2 fits: ArithmeticError: singular\n" in text
    assert "| ridge + Tobit step |" in text
    pictures = render_pictures(summary)
    assert list(pictures) == ["race_centred_anmse.png", "race_crps.png", "race_log_score.png"]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())
    assert render_pictures(summary) == pictures


def test_comparisons_follow_the_corrected_test() -> None:
    frame = pd.DataFrame(
        [
            {"data": "a", "split": split, "name": name, "method": name, "status": "done"}
            | dict.fromkeys(("crps", "log_score", "r2", "coverage", "width"), 0.0)
            | dict.fromkeys(
                ("randomised_coverage", "bound_error", "seconds", "megabytes", "at_bound"), 0.0
            )
            | {"centred_anmse": value, "pit": np.array([0.5])}
            for name, values in {
                NAME: [0.50, 0.52, 0.51],
                "worse": [0.60, 0.63, 0.61],
                "better": [0.40, 0.42, 0.42],
                "level": [0.40, 0.62, 0.51],
            }.items()
            for split, value in enumerate(values)
        ]
    )
    summary = Summary(frame)
    verdicts = {
        name: summary.compare("a", name, "centred_anmse").verdict
        for name in ("worse", "better", "level")
    }
    assert verdicts == {"worse": "behind", "better": "ahead", "level": "level"}


def test_an_answer_of_any_size_comes_back() -> None:
    found = dict(run_in_children([1, 2, 3], lambda n: np.full(n * 10**6, n), at_once=2, limit=60))
    assert {job: ended.result.sum() for job, ended in found.items()} == {
        job: job * job * 10**6 for job in (1, 2, 3)
    }


def test_methods_by_name() -> None:
    methods = {**METHODS, "absent": Peer("absent", fit_ridge, available=lambda: "Needs R.")}
    here, absent = split_by_availability(choose(["ridge", "absent"], methods))
    assert list(here) == [NAME, "ridge"]
    assert absent == {"absent": "Needs R."}
    with pytest.raises(ValueError, match=r"unknown method\(s\) \['rigde'\]; there are"):
        choose(["rigde"], methods)
