"""Reference values of the normal tail functions, computed with mpmath at 900 digits.

Run ``python make_table.py`` in this folder to rewrite ``normal.csv`` and ``interval.csv``. Values
that a double cannot hold (below 1e-300) are left out: there is no relative error to measure.
"""

import csv
from collections.abc import Iterable
from pathlib import Path

import mpmath as mp

HERE = Path(__file__).parent
mp.mp.dps = 900  # log Φ(40) = −3.7e-350 needs more than 350 digits of Φ


def cdf(z: float) -> mp.mpf:
    return mp.erfc(-mp.mpf(z) / mp.sqrt(2)) / 2


def pdf(z: float) -> mp.mpf:
    return mp.exp(-(mp.mpf(z) ** 2) / 2) / mp.sqrt(2 * mp.pi)


def tail_row(z: float) -> dict[str, mp.mpf]:
    mills = pdf(z) / cdf(z)
    excess = mills + mp.mpf(z)
    return {
        "z": mp.mpf(z),
        "log_ndtr": mp.log(cdf(z)),
        "mills": mills,
        "mills_excess": excess,
        "mills_slope": -mills * excess,
    }


def interval_row(a: float, b: float) -> dict[str, mp.mpf]:
    mass = cdf(b) - cdf(a)
    return {
        "a": mp.mpf(a),
        "b": mp.mpf(b),
        "log_diff_ndtr": mp.log(mass),
        "mills_a": pdf(a) / mass,
        "mills_b": pdf(b) / mass,
    }


def write(name: str, rows: Iterable[dict[str, mp.mpf]]) -> None:
    rows = list(rows)
    with (HERE / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({key: as_text(value) for key, value in row.items()})


def as_text(value: mp.mpf) -> str:
    return "" if 0 < abs(value) < 1e-300 else mp.nstr(value, 20, strip_zeros=True)


def main() -> None:
    points = [k / 4 for k in range(-160, 161)]
    edges = [-6.0, -5.9999, -6.0001, -1.0, -0.9999, -1.0001, 1e-8, -1e-8]
    far = [-1e3, -1e5, -1e8, -1e12]
    write("normal.csv", (tail_row(z) for z in [*points, *edges, *far]))
    centres = [k * 2.5 + 0.3 for k in range(-16, 16)]
    widths = [
        2.0**-30,
        2.0**-20,
        2.0**-12,
        2.0**-6,
        0.125,
        0.5,
        1.0,
        2.0,
        4.0,
        6.0,
        10.0,
        20.0,
        40.0,
    ]
    pairs = [(c - w / 2, c + w / 2) for c in centres for w in widths]
    write("interval.csv", (interval_row(a, b) for a, b in pairs if max(abs(a), abs(b)) <= 40))


if __name__ == "__main__":
    main()
