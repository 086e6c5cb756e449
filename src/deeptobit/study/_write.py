"""Study files and tables appear whole or not at all."""

from pathlib import Path

from deeptobit import persistence


def write_whole(path: Path, content: str | bytes) -> None:
    """Write text (UTF-8) or bytes beside the file, then rename: no half file is ever seen.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "study.toml"), "[data]")
    ...     [file.name for file in Path(folder).iterdir()]
    ['study.toml']
    """
    persistence.write_whole(path, [content.encode() if isinstance(content, str) else content])
