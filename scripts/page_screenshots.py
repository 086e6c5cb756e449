"""Pictures of the pages of a simulated cohort at three widths: docs/images/PAGE-WIDTH.png.

Run ``python scripts/page_screenshots.py`` from the root of the repository; it needs the package
chromium of the system, and takes about two minutes. It prints the size of the patient page, and how
long the page takes to answer.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from deeptobit import MixedTobitRegressor
from deeptobit.app.report import render_comparison, render_patient_page, render_report
from deeptobit.app.study import (
    FittedStudy,
    Protocol,
    build_data,
    data_of_study,
    evaluate,
    fit_study,
    make_methods,
    read_data,
    read_study,
)
from deeptobit.datasets import make_clinical_cohort

FOLDER = Path(__file__).parents[1] / "docs" / "images"
SEED = 0
N_OUTCOMES = 7
WIDTHS = {390: 1400, 800: 1400, 1280: 1690}
# What is typed into the page of a model of visits.
PAST = {"years of the forecast": "4", "age": "71", "volume": "2.8"} | {
    f"{name}, visit {visit}": text
    for visit, row in enumerate((("0", "29", "8"), ("1", "27", "12"), ("2", "26", "15")), start=1)
    for name, text in zip(("years", "MMSE", "ADAS13"), row, strict=True)
}
ANSWER = """() => {
  const field = document.getElementById("field-0"), typical = Number(field.value);
  const started = performance.now();
  for (let k = 0; k < 20; k++) {
    field.value = String(typical * (1 + k / 200));
    field.dispatchEvent(new Event("input"));
  }
  return (performance.now() - started) / 20;
}"""


def main() -> None:
    """Fit, render, open, photograph."""
    with TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        fitted = fitted_cohort(folder)
        pages = {
            "report": render_report(fitted),
            "patient": render_patient_page(fitted, fingerprint="3e524bb99be9b952"),
            "comparison": compared(folder),
            "visits": render_patient_page(fitted_visits()),
        }
        print(f"patient page: {len(pages['patient'].encode()) / 1e3:.0f} kB")
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for page, text in pages.items():
            file = folder / f"{page}.html"
            file.write_text(text, encoding="utf-8")
            for width, height in WIDTHS.items():
                photograph(browser, file, FOLDER / f"{page}-{width}.png", width, height)
        browser.close()


def photograph(browser: Browser, file: Path, target: Path, width: int, height: int) -> None:
    """The top of a page; of the patient page after one value was changed."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    page.goto(file.as_uri())
    if file.stem == "visits":
        for label, text in PAST.items():
            page.get_by_label(label, exact=True).fill(text)
        page.evaluate("scrollTo(0, 0)")
    if file.stem == "patient":
        print(f"answers in {page.evaluate(ANSWER):.0f} ms at {width} px")
        page.locator(".score summary").first.click()
        page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=target)
    page.close()
    Image.open(target).quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"{target.name}: {target.stat().st_size / 1e3:.0f} kB")


def write_cohort(folder: Path) -> Path:
    """Two visits of each of 335 simulated people, some of their scores."""
    cohort = make_clinical_cohort(670, random_state=SEED)
    scores = cohort.Y.iloc[:, 1 : N_OUTCOMES + 1]
    table = cohort.X.join(scores)
    table.insert(0, "person", [f"P{row // 2}" for row in range(len(table))])
    table.to_csv(folder / "cohort.csv", index=False)
    targets = "".join(
        f"[targets.{name}]\nlower = {cohort.lower[name]}\nupper = {cohort.upper[name]}\n"
        for name in map(str, scores)
    )
    path = folder / "Memory clinic.toml"
    path.write_text(f'[data]\nfile = "cohort.csv"\ngroup = "person"\n{targets}', encoding="utf-8")
    return path


def fitted_cohort(folder: Path) -> FittedStudy:
    """The study of that table, fitted."""
    study = read_study(write_cohort(folder))
    return fit_study(study, build_data(study, read_data(study)), n_jobs=2)


def fitted_visits() -> MixedTobitRegressor:
    """Four visits of each of 150 simulated people, and two scores."""
    rng = np.random.default_rng(SEED)
    person, years = np.repeat(np.arange(150), 4), np.tile([0.0, 1.0, 2.0, 3.0], 150)
    age, volume = rng.normal(72.0, 6.0, 150), rng.normal(3.0, 0.4, 150)
    level = rng.normal(0.0, 1.5, 150) + 2.0 * (volume - 3.0)
    decline = rng.normal(-0.8, 0.7, 150) + 0.5 * (volume - 3.0)
    health = level[person] + decline[person] * years
    table = pd.DataFrame({"years": years, "age": age[person], "volume": volume[person]})
    table["MMSE"] = np.clip(np.round(28.0 + health + rng.normal(size=600)), 0, 30)
    table["ADAS13"] = np.clip(np.round(12.0 - 2.5 * health + 2.0 * rng.normal(size=600)), 0, 85)
    formula = "MMSE + ADAS13 ~ years + age + volume + (1 + years | person)"
    table["person"] = person
    return MixedTobitRegressor.from_formula(formula, table, upper=[30, 85])


def compared(folder: Path) -> str:
    """Three methods on it."""
    study = read_study(write_cohort(folder))
    data = data_of_study(build_data(study, read_data(study)), "Memory clinic")
    protocol = Protocol(train_shares=(0.5, 0.8), repeats=4, seed=SEED)
    found = evaluate(data, make_methods(["null", "ridge", "tobit"]), protocol)
    return render_comparison(found, "Memory clinic")


if __name__ == "__main__":
    main()
