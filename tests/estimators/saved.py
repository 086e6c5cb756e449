"""What it means that two models are the same."""

from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deeptobit import load
from deeptobit.estimators.formula import FormulaDesign

NOT_SAVED = {"_trained"}  # training data


def round_trip(model: Any, folder: Path) -> Any:
    """The model, saved and loaded."""
    model.save(folder / "a.model")
    return load(folder / "a.model")


def assert_same(a: Any, b: Any, where: str = "") -> None:
    """Equal to the last bit, with types, orders of keys and memory orders."""
    if isinstance(a, FormulaDesign):  # after loading it is one that knows less
        assert_same(a.formula, b.formula, where)
        assert_same(a.spec.column_names, b.spec.column_names, where)
        return
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        assert a.shape == b.shape, where
        # What is neither rows nor columns without gaps comes back as its copy would.
        assert a.copy(order="K").flags.c_contiguous == b.flags.c_contiguous, where
        np.testing.assert_array_equal(a, b, where)
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for index, (mine, other) in enumerate(zip(a, b, strict=True)):
            assert_same(mine, other, f"{where}[{index}]")
    elif isinstance(a, np.random.RandomState):
        assert_same(a.get_state(legacy=False), b.get_state(legacy=False), where)
    elif is_dataclass(a) or type(a).__module__.startswith("deeptobit"):
        assert_same(contents(a), contents(b), where)
    elif hasattr(a, "get_n_splits"):
        assert_same(vars(a), vars(b), where)
    else:
        assert a == b or (a != a and b != b), where


def contents(value: Any) -> dict[str, Any]:
    """Attributes that are saved, in an order that does not matter."""
    return {name: vars(value)[name] for name in sorted(vars(value).keys() - NOT_SAVED)}
