"""What the paper's tables say: mean and standard deviation over ten splits, by training share."""

from __future__ import annotations

from collections.abc import Mapping

PaperRow = Mapping[float, tuple[float, float]]
_SHARES = (0.4, 0.5, 0.6, 0.7, 0.8)


def _row(*cells: float) -> PaperRow:
    """Means at 40 to 80 %, then their standard deviations, in units of 0.0001."""
    means, spreads = cells[:5], cells[5:]
    return {
        share: (mean / 1e4, spread / 1e4)
        for share, mean, spread in zip(_SHARES, means, spreads, strict=True)
    }


# Table 2: synthetic data; its Subspace Networks are layers 1 and 3 of Table 3.
SYNTHETIC: Mapping[str, PaperRow] = {
    "lasso": _row(1412, 1384, 1365, 1349, 1343, 7, 5, 5, 5, 11),
    "lasso, clipped": _row(1127, 1102, 1088, 1078, 1070, 10, 10, 9, 10, 12),
    "Tobit": _row(428, 408, 395, 388, 383, 3, 4, 3, 4, 6),
    "Multi Trace": _row(1333, 1323, 1325, 1315, 1308, 9, 10, 12, 13, 8),
    "Multi Trace, clipped": _row(1053, 1054, 1031, 1024, 1040, 27, 42, 46, 42, 11),
    "DNN i": _row(623, 593, 587, 590, 555, 41, 48, 53, 71, 57),
    "DNN ii": _row(489, 462, 455, 447, 431, 35, 42, 54, 43, 53),
    "DNN iii": _row(431, 400, 395, 386, 380, 41, 39, 50, 58, 57),
}

# Table 3: the layers of a Subspace Network on the same data.
SYNTHETIC_LAYERS: Mapping[int, PaperRow] = {
    1: _row(390, 389, 388, 388, 390, 4, 7, 6, 6, 8),
    2: _row(381, 379, 378, 378, 378, 5, 5, 4, 5, 6),
    3: _row(369, 366, 364, 363, 364, 2, 3, 3, 3, 5),
    10: _row(368, 366, 364, 363, 363, 2, 3, 3, 3, 5),
    20: _row(368, 365, 363, 362, 363, 2, 3, 3, 3, 5),
}

# Table 5: the layers of a network on ADNI.
REAL_LAYERS: Mapping[int, PaperRow] = {
    1: _row(2016, 1992, 1990, 1981, 1970, 57, 40, 61, 46, 34),
    2: _row(2000, 1992, 1990, 1966, 1967, 39, 53, 47, 52, 44),
    3: _row(1981, 1971, 1967, 1953, 1956, 31, 38, 38, 39, 40),
    5: _row(1977, 1968, 1964, 1952, 1955, 31, 36, 39, 39, 39),
    10: _row(1977, 1967, 1964, 1951, 1953, 31, 35, 38, 38, 39),
}

# Table 6: ADNI; all are clipped there. Its Subspace Networks are layers 1 and 3 of Table 5.
REAL: Mapping[str, PaperRow] = {
    "least squares, clipped": _row(3874, 3119, 2779, 2563, 2422, 203, 124, 123, 108, 112),
    "lasso, clipped": _row(2393, 2202, 2112, 2037, 2005, 56, 49, 55, 42, 54),
    "Tobit": _row(3870, 3072, 2719, 2516, 2384, 306, 144, 114, 108, 99),
    "Multi Trace, clipped": _row(2572, 2406, 2596, 2368, 2176, 156, 175, 233, 362, 171),
    "Multi ℓ2,1, clipped": _row(2006, 2002, 2072, 2017, 2009, 99, 132, 204, 116, 50),
    "DNN i": _row(2549, 2236, 2215, 2149, 2132, 442, 66, 76, 77, 138),
    "DNN ii": _row(2388, 2208, 2200, 2141, 2090, 121, 62, 76, 79, 79),
    "DNN iii": _row(2113, 2127, 2087, 2093, 2069, 63, 118, 102, 137, 135),
}

# Table 7: ranks on ADNI.
SN_RANKS: Mapping[int, PaperRow] = {
    1: _row(2052, 2047, 2052, 2043, 2058, 30, 29, 33, 44, 51),
    3: _row(1993, 1983, 1988, 1975, 1977, 36, 34, 47, 42, 42),
    5: REAL_LAYERS[3],
    10: _row(2010, 2001, 1996, 1990, 1990, 44, 46, 52, 57, 58),
}
DNN_RANKS: Mapping[int, PaperRow] = {
    1: _row(2322, 2298, 2244, 2178, 2256, 146, 93, 132, 129, 117),
    3: _row(2360, 2256, 2277, 2177, 2250, 60, 127, 99, 115, 79),
    5: REAL["DNN iii"],
    10: _row(2196, 2235, 2145, 2083, 2158, 124, 142, 208, 127, 183),
}

# Table 8: six layers on ADNI.
CALIBRATION: Mapping[str, PaperRow] = {
    "one σ for all": _row(1993, 1987, 1991, 1982, 1984, 34, 43, 44, 42, 41),
    "calibrated": _row(1977, 1967, 1964, 1951, 1954, 31, 36, 39, 38, 39),
}
