from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

from deeptobit.app.report import render_comparison
from deeptobit.app.study import evaluate, make_methods, open_store
from tests.app.study.evaluations import QUICK, small_data

METHODS = ["null", "lasso"]


class _StoppedError(Exception):
    pass


def test_a_stopped_run_continues_to_the_same_table(tmp_path: Path) -> None:
    data, methods = small_data(), make_methods(METHODS)

    def stop_after_three(done: int, total: int, label: str) -> None:
        if done == 3:
            raise _StoppedError

    store = open_store(tmp_path / "out", data, methods, QUICK)
    with pytest.raises(_StoppedError):
        evaluate(data, methods, QUICK, store=store, progress=stop_after_three)
    heard: list[tuple[int, int, str]] = []
    again = open_store(tmp_path / "out", data, make_methods(METHODS), QUICK)
    found = evaluate(data, methods, QUICK, store=again, progress=lambda *news: heard.append(news))
    assert heard[0] == (3, 8, "")
    assert [done for done, _, _ in heard[1:]] == [4, 5, 6, 7, 8]
    assert heard[-1][2] == "lasso, 70% to train on, repeat 2"
    whole = evaluate(data, methods, QUICK)
    assert_frame_equal(
        found.results.drop(columns="seconds"),
        whole.results.drop(columns="seconds"),
        check_dtype=False,
    )
    assert_frame_equal(again.read()[0], found.results, check_dtype=False)


def test_other_data_or_settings_are_refused(tmp_path: Path) -> None:
    data, methods = small_data(), make_methods(METHODS)
    open_store(tmp_path, data, methods, QUICK)
    before = (tmp_path / "settings.json").read_bytes()
    X = data.X.copy()
    X[3, 1] = 0.123
    low = data.targets.low.copy()
    low[np.isfinite(low)] -= 1e-9
    others = [
        replace(data, X=X),
        replace(data, targets=replace(data.targets, low=low)),
        replace(data, targets=replace(data.targets, names=("a", "b", "d"))),
        replace(data, groups=np.arange(80)),
    ]
    for other in others:
        with pytest.raises(ValueError, match="has results of other data; name another folder"):
            open_store(tmp_path, other, methods, QUICK)
    with pytest.raises(ValueError, match=r"other protocol repeats \(2 there, 3 here\)"):
        open_store(tmp_path, data, methods, replace(QUICK, repeats=3))
    with pytest.raises(ValueError, match=r"other methods lasso \(Regression.* there, None"):
        open_store(tmp_path, data, make_methods(["null"]), QUICK)
    assert (tmp_path / "settings.json").read_bytes() == before
    open_store(tmp_path, data, methods, QUICK)


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "summary.md").write_text("mine")
    with pytest.raises(ValueError, match="has other contents"):
        open_store(tmp_path, small_data(), make_methods(METHODS), QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["summary.md"]
    with pytest.raises(ValueError, match="has other contents"):
        open_store(tmp_path / "summary.md", small_data(), make_methods(METHODS), QUICK)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe"])
def test_damaged_files_are_named(content: bytes, tmp_path: Path) -> None:
    data, methods = small_data(), make_methods(METHODS)
    store = open_store(tmp_path, data, methods, QUICK)
    (tmp_path / "results.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"results.parquet is damaged; delete it"):
        store.read()
    (tmp_path / "settings.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"settings.json is damaged; name another folder"):
        open_store(tmp_path, data, methods, QUICK)


def test_hostile_names_stay_text() -> None:
    names = ["<script>alert(1)</script>", "a|b\n# *c*", "µ & [link](x)"]
    found = evaluate(small_data(names=names), make_methods(METHODS), replace(QUICK, repeats=1))
    assert set(found.results["target"]) == set(names)
    page = render_comparison(found, "<b>study</b>")
    assert page.count("<script") == 1
    assert "<b>study" not in page
    assert "±" not in page  # one split has no spread
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "µ &amp; [link](x)" in page
