"""What is fuzzed: a reader of files, its one error, and files to begin with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

Change = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Target:
    """A reader of files from anywhere.

    Parameters
    ----------
    name : str
    file : str
        The name under which a file is read.
    read : function
        Reads the file at a path, and uses what it finds.
    refusal : type
        The one error with which a file may be refused.
    seeds : function
        Names and contents of sound files.
    mutate : function
        A content with something changed, given random numbers and a way to change bytes.
    """

    name: str
    file: str
    read: Callable[[Path], object]
    refusal: type[Exception]
    seeds: Callable[[], dict[str, bytes]]
    mutate: Callable[[bytes, Random, Change], bytes]

    def accepts(self, content: bytes) -> bool:
        """Whether a file of this content is read, and not refused; all else is an error."""
        with TemporaryDirectory(prefix="deeptobit-fuzz-") as folder:
            path = Path(folder, self.file)
            path.write_bytes(content)
            try:
                with warnings.catch_warnings(action="ignore"):
                    self.read(path)
            except self.refusal as error:
                str(error).encode()  # a sentence that can be printed
                return False
        return True
