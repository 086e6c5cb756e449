"""Sections that take no time, with all that a section can hold."""

import numpy as np
import pandas as pd

from paper.recipes import CHOSEN, OURS, PRINTED
from paper.section import Claim, Context, FigureOf, Scale, Section, TableOf

HOSTILE = "<script>alert('x')</script> & \"quotes\" | $x$"


def quick_section(scale: Scale, context: Context) -> Section:
    """One table, one figure of lines, a claim of every verdict, and one of ours."""
    context.progress(1, 1, "nothing")
    x = np.arange(1.0, 6.0)
    line = {"label": HOSTILE, "x": x, "y": x**2, "low": x, "high": x**3}
    panel = {
        "title": HOSTILE,
        "xlabel": "rows",
        "ylabel": "loss",
        "log_x": False,
        "log_y": True,
        "lines": [line],
    }
    frame = pd.DataFrame(
        {"method": ["SN", HOSTILE], "ours": ["0.10 (0.01)", "-0.20"], "paper": [0.1234567, np.nan]}
    )
    return Section(
        "quick",
        "Quick section",
        f"First paragraph.\n\n{HOSTILE}",
        tables=(TableOf("A table", frame, pd.DataFrame({"seed": [context.seed], "value": [0.5]})),),
        figures=(FigureOf("A figure", "lines", {"panels": [panel]}),),
        claims=(
            Claim(HOSTILE, "Table 1", "0.5", "holds", "t-test, p = 0.01"),
            Claim("B", "", "", "does not hold", ""),
            Claim("C", "", "", "cannot be told", ""),
            Claim("D", "Table 2", "0.9", "does not hold", "", row=PRINTED),
            Claim("D", "Table 2", "0.5", "holds", "", row=CHOSEN),
            Claim("D", "Table 2", "0.4", "holds", "", row=OURS),
            Claim("E", "", "", "holds", "", by="us"),
        ),
    )
