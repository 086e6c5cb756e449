"""A table nobody prepared: semicolons, decimal commas, a BOM, blanks, words, dates, limits."""

from pathlib import Path

import numpy as np

N_ROWS = 150
HEADER = "Proband;Alter;Geschlecht;Hippocampus µl;Visite;MMSE;ADAS13;Tau;Zentrum;Notiz;Gerät;site"


def write_messy_csv(path: Path, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    age = rng.normal(72.0, 7.0, N_ROWS)
    health = rng.normal(size=N_ROWS) - 0.05 * (age - 72.0)
    mmse = np.clip(np.round(28.0 + 2.0 * health + rng.normal(size=N_ROWS)), 0, 30)
    adas = np.clip(12.0 - 6.0 * health + 3.0 * rng.normal(size=N_ROWS), 0, 85)
    tau = np.exp(-health + 0.4 * rng.normal(size=N_ROWS))

    def number(value: float, blank: float = 0.05) -> str:
        return "" if rng.random() < blank else f"{value:.2f}".replace(".", ",")

    lines = [HEADER]
    for i in range(N_ROWS):
        cells = [
            f"{i + 1:04d}",
            number(age[i]),
            str(rng.choice(["w", "m", "NA"], p=[0.5, 0.45, 0.05])),
            number(3000.0 + 300.0 * health[i]),
            f"{1 + i % 28:02d}.03.2019",
            "" if rng.random() < 0.1 else f"{mmse[i]:.0f}",
            number(adas[i]),
            "<0,40" if tau[i] < 0.4 else number(tau[i], 0.02),
            f"Zentrum {i % 4}",
            f"Notiz Nr. {i}" if i % 3 else "",
            "1",
            str(i % 12),
        ]
        lines.append(";".join(cells))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return path
