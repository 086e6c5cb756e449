"""Write likelihood.csv: nll of single entries with all derivatives, by mpmath at 60 to 330 digits.

Run ``python make_likelihood_table.py`` in this folder (a minute and a half). An entry is the
interval [low, high] around a latent score η = 0 in units of σ = 1; the derivatives by η and log σ
are numerical ones at the precision that :func:`mpmath.diff` chooses for them, so that no formula of
the library is used to check itself. Values that a double cannot hold (below 1e-300) are left out:
there is no relative error to measure.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

import mpmath as mp

HERE = Path(__file__).parent

POINTS = [0.2, 0.7, 1.5, 3.0, 5.0, 6.0, 8.0, 12.0, 20.0, 37.0, 60.0, 300.0, 1e3, 1e4, 1e6, 1e8]
STARTS = [-1e4, -100.0, -30.0, -8.2, -4.7, -1.3, 0.4, 3.0, 10.0, 30.0, 100.0, 1e4]
WIDTHS = [2.0**-20, 2.0**-10, 0.5, 2.0, 8.0, 13.0, 40.0]
AROUND = [(-6.1, 5.8), (-3.0, 7.5), (-5.0, 5.5), (-1.0, 0.6), (-0.2, 0.1)]
ORDERS = {
    "nll": (0, 0),
    "latent": (1, 0),
    "log_sigma": (0, 1),
    "latent_latent": (2, 0),
    "latent_log_sigma": (1, 1),
    "log_sigma_log_sigma": (0, 2),
}


class Family:
    """A symmetric distribution: log density, lower tail, and the digits to work with.

    Differences of the nll tell derivatives of 1e-300 only if they have 300 digits.
    """

    def __init__(
        self,
        name: str,
        log_pdf: Callable[[mp.mpf], mp.mpf],
        tail: Callable[[mp.mpf], mp.mpf],
        digits: int,
    ) -> None:
        self.name, self.log_pdf, self.tail, self.digits = name, log_pdf, tail, digits

    def nll(self, low: mp.mpf, high: mp.mpf) -> mp.mpf:
        """−log f, or −log(F(high) − F(low)) from whichever tails are small."""
        if low == high:
            return -self.log_pdf(low)
        if low < 0 < high:
            return -mp.log1p(-self.tail(low) - self.tail(-high))
        near, far = (low, high) if low >= 0 else (-high, -low)
        return -mp.log(self.tail(-near) - self.tail(-far))

    def entry(self, low: float, high: float) -> Callable[[mp.mpf, mp.mpf], mp.mpf]:
        """The nll as a function of η and log σ."""

        def function(latent: mp.mpf, log_sigma: mp.mpf) -> mp.mpf:
            scale = mp.exp(-log_sigma)
            jacobian = log_sigma if low == high else mp.mpf(0)
            return self.nll((low - latent) * scale, (high - latent) * scale) + jacobian

        return function


def gaussian() -> Family:
    return Family(
        "gaussian",
        lambda z: -(z**2) / 2 - mp.log(2 * mp.pi) / 2,
        lambda z: mp.erfc(-z / mp.sqrt(2)) / 2,
        digits=330,
    )


def logistic() -> Family:
    return Family(
        "logistic",
        lambda z: -abs(z) - 2 * mp.log1p(mp.exp(-abs(z))),
        lambda z: 1 / (1 + mp.exp(-z)),
        digits=330,
    )


def student_t(name: str, df: mp.mpf) -> Family:
    def log_pdf(z: mp.mpf) -> mp.mpf:
        norm = mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi) / 2
        return norm - (df + 1) / 2 * mp.log1p(z**2 / df)

    return Family(
        name,
        log_pdf,
        lambda z: mp.betainc(df / 2, 0.5, 0, df / (df + z**2), regularized=True) / 2,
        digits=60,
    )


def entries() -> Iterator[tuple[float, float]]:
    """Observed, left- and right-censored on both sides, and intervals from narrow to wide."""
    for z in (sign * point for point in POINTS for sign in (-1.0, 1.0)):
        yield z, z
        yield -mp.inf, z
        yield z, mp.inf
    for start in STARTS:
        for width in WIDTHS:
            yield start, start + width
    yield from AROUND


def row(family: Family, low: float, high: float) -> dict[str, str]:
    function = family.entry(low, high)
    with mp.workdps(family.digits):
        values = {
            name: mp.diff(function, (0, 0), order) if any(order) else function(mp.mpf(0), mp.mpf(0))
            for name, order in ORDERS.items()
        }
    ends = {"family": family.name, "low": repr(float(low)), "high": repr(float(high))}
    return ends | {name: as_text(value) for name, value in values.items()}


def as_text(value: mp.mpf) -> str:
    return "" if abs(value) < 1e-300 else mp.nstr(value, 20, strip_zeros=True)


def main() -> None:
    families = [gaussian(), logistic(), student_t("t4", mp.mpf(4)), student_t("t2.5", mp.mpf(2.5))]
    with (HERE / "likelihood.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["family", "low", "high", *ORDERS], lineterminator="\n")
        writer.writeheader()
        writer.writerows(row(family, *ends) for family in families for ends in entries())


if __name__ == "__main__":
    main()
