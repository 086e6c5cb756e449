"""Column names as words, and the words that may stand beside the name of a scale."""

from __future__ import annotations

import re

# What makes a scale nothing else: that it is a total, and when it was taken. A bare number would
# be an item (phq9_3) or another version (phq_8).
BESIDE = (
    r"(_?(total|tot|score|scor|sum|raw))?"
    r"(_(total|tot|score|scor|sum|raw|bl|baseline|sc|screening|followup|fu|post|pre"
    r"|(t|v|m|w|y|fu|month|week|year|visit|time|wave)_?\d+))*"
)


def words_of(name: str) -> str:
    """A name in lower case, with one _ between its words.

    Examples
    --------
    >>> words_of("MMSE total (12 Mo.)")
    'mmse_total_12_mo'
    """
    return re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")
