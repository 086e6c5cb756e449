"""Held-out predictions as plain values and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deeptobit.estimators import noise_from_state, noise_state
from deeptobit.likelihood import Predictive
from deeptobit.study._held_out import HeldOut
from deeptobit.targets import CensoredTargets


def held_out_state(held_out: HeldOut) -> dict[str, Any]:
    """Bounds are stored once: predictions have those of the targets."""
    targets = held_out.targets
    return {
        "targets": {
            "names": list(targets.names),
            "low": targets.low,
            "high": targets.high,
            "lower": targets.lower,
            "upper": targets.upper,
            "entry_lower": targets.entry_lower,
            "entry_upper": targets.entry_upper,
        },
        "noise": noise_state(held_out.predictive.noise),
        "model": _scores(held_out.predictive),
        "null": _scores(held_out.null),
        "stages": list(held_out.stages),
        "coverage": held_out.coverage,
    }


def held_out_from_state(state: Mapping[str, Any]) -> HeldOut:
    """The predictions that ``held_out_state`` described."""
    described = dict(state["targets"])
    targets = CensoredTargets(**described | {"names": tuple(described["names"])})
    noise = noise_from_state(state["noise"])
    bounds = targets.lower_bounds, targets.upper_bounds
    return HeldOut(
        targets=targets,
        predictive=Predictive(noise, state["model"]["latent"], state["model"]["sigma"], *bounds),
        null=Predictive(noise, state["null"]["latent"], state["null"]["sigma"], *bounds),
        stages=tuple(state["stages"]),
        coverage=state["coverage"],
    )


def _scores(predictive: Predictive) -> dict[str, Any]:
    return {"latent": predictive.latent, "sigma": predictive.sigma}
