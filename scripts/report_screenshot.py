"""Picture of a report on a simulated cohort: docs/images/report.png.

Run ``python scripts/report_screenshot.py`` from the root of the repository; it needs the package
chromium of the system, and takes about a minute.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import sync_playwright

from deeptobit.app.report import render_report
from deeptobit.app.study import FittedStudy, build_data, fit_study, read_data, read_study
from deeptobit.datasets import make_clinical_cohort

TARGET = Path(__file__).parents[1] / "docs" / "images" / "report.png"
SEED = 0
N_OUTCOMES = 7
WIDTH, HEIGHT = 1280, 1690


def main() -> None:
    """Fit, render, open, photograph."""
    with TemporaryDirectory() as folder:
        page_file = Path(folder, "report.html")
        page_file.write_text(render_report(fitted_cohort(Path(folder))), encoding="utf-8")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(
                viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"
            )
            page.goto(page_file.as_uri())
            page.screenshot(path=TARGET)
            browser.close()
    Image.open(TARGET).quantize(128, dither=Image.Dither.NONE).save(TARGET, optimize=True)
    print(f"{TARGET.name}: {TARGET.stat().st_size / 1e3:.0f} kB")


def fitted_cohort(folder: Path) -> FittedStudy:
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
    study = read_study(path)
    return fit_study(study, build_data(study, read_data(study)), n_jobs=2)


if __name__ == "__main__":
    main()
