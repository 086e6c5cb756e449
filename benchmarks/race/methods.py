"""Who takes part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.race.missing import MISSING
from benchmarks.race.ours import NAME, OURS
from benchmarks.race.peer import Peer
from benchmarks.race.peers import PEERS

METHODS: dict[str, Peer] = {NAME: OURS, **PEERS, **MISSING}


def choose(names: Sequence[str], methods: Mapping[str, Peer]) -> dict[str, Peer]:
    """Methods by their names, all if none is named; deeptobit is always among them.

    Raises
    ------
    ValueError
        If there is no such method.

    Examples
    --------
    >>> list(choose(["missing-5"], METHODS))
    ['deeptobit', 'missing-5']
    """
    unknown = [name for name in names if name not in methods]
    if unknown:
        raise ValueError(f"unknown method(s) {unknown}; there are {list(methods)}")
    chosen = {NAME, *names} if names else set(methods)
    return {name: peer for name, peer in methods.items() if name in chosen}


def split_by_availability(
    methods: Mapping[str, Peer],
) -> tuple[dict[str, Peer], dict[str, str]]:
    """Methods that can run here, and the names of the others with their reasons."""
    reasons = {name: peer.available() for name, peer in methods.items()}
    here = {name: peer for name, peer in methods.items() if reasons[name] is None}
    absent = {methods[name].name: why for name, why in reasons.items() if why is not None}
    return here, absent
