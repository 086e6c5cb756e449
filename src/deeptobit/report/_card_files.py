"""The files of a model card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deeptobit.report._card_markdown import card_markdown
from deeptobit.study import write_whole


def card_files(model: Path) -> tuple[Path, Path]:
    """Where the card of a model file belongs: Markdown and JSON, beside it.

    Examples
    --------
    >>> [file.name for file in card_files(Path("cohort.deeptobit"))]
    ['cohort-card.md', 'cohort-card.json']
    """
    return model.with_name(f"{model.stem}-card.md"), model.with_name(f"{model.stem}-card.json")


def write_card(card: Mapping[str, Any], model: Path | str) -> tuple[Path, Path]:
    """Write a card as Markdown and as JSON beside the file of its model; returns both paths.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     files = write_card({"name": "clinic"}, Path(folder, "clinic.model"))
    ...     print(files[0].read_text().splitlines()[0])
    # Model card: clinic
    """
    for_people, for_machines = card_files(Path(model))
    write_whole(for_people, card_markdown(card))
    write_whole(for_machines, json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    return for_people, for_machines
