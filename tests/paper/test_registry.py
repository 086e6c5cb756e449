"""Sections are found by name, kept whole, and read again only with the same settings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paper.registry import NAMES, finished, reproduce
from paper.section import PAPER, SMALL, Context, Scale, Section
from tests.paper.sections import quick_section


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds with which the section was computed."""
    seeds: list[int] = []

    def work(scale: Scale, context: Context) -> Section:
        seeds.append(context.seed)
        return quick_section(scale, context)

    monkeypatch.setitem(NAMES, "quick", work)
    return seeds


def test_a_finished_section_is_read_and_is_the_same(runs: list[int], tmp_path: Path) -> None:
    context = Context(store=tmp_path)
    assert finished("quick", SMALL, context) is None
    first = reproduce("quick", SMALL, context)
    again = reproduce("quick", SMALL, replace(context, n_jobs=2))
    assert runs == [0]
    assert (again.name, again.title, again.text) == (first.name, first.title, first.text)
    assert again.claims == first.claims
    assert again.settings["scale"]["n_samples"] == SMALL.n_samples
    assert again.seconds == first.seconds > 0.0
    pd.testing.assert_frame_equal(again.tables[0].frame, first.tables[0].frame)
    assert first.tables[0].data is not None
    assert again.tables[0].data is not None
    pd.testing.assert_frame_equal(again.tables[0].data, first.tables[0].data)
    line, before = (section.figures[0].data["panels"][0]["lines"][0] for section in (again, first))
    np.testing.assert_array_equal(line["high"], before["high"])


@pytest.mark.parametrize(
    ("scale", "change"),
    [
        (PAPER, {}),
        (SMALL, {"seed": 1}),
        (SMALL, {"protocol": "paper"}),
        (SMALL, {"path": Path("adni")}),
        (replace(SMALL, repeats=2), {}),
    ],
)
def test_other_settings_are_run_and_the_first_stay(
    runs: list[int], tmp_path: Path, scale: Scale, change: dict[str, object]
) -> None:
    context = Context(store=tmp_path)
    reproduce("quick", SMALL, context)
    reproduce("quick", scale, replace(context, **change))  # type: ignore[arg-type]
    assert len(runs) == 2
    assert finished("quick", SMALL, context) is not None


def test_a_damaged_section_is_refused(runs: list[int], tmp_path: Path) -> None:
    context = Context(store=tmp_path)
    reproduce("quick", SMALL, context)
    (path,) = (tmp_path / "sections").iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="is damaged; delete it to compute it again"):
        finished("quick", SMALL, context)


def test_nothing_is_kept_of_a_section_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(scale: Scale, context: Context) -> Section:
        raise KeyboardInterrupt

    monkeypatch.setitem(NAMES, "quick", fail)
    with pytest.raises(KeyboardInterrupt):
        reproduce("quick", SMALL, Context(store=tmp_path))
    assert list(tmp_path.rglob("*.json")) == []
