"""Files appear whole or not at all."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile


def write_whole(path: Path, text: str) -> None:
    """Write beside the file, then rename: Ctrl-C or a full disk leaves what was there before.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "study.toml"), "[data]")
    ...     [file.name for file in Path(folder).iterdir()]
    ['study.toml']
    """
    with NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        draft = Path(file.name)
        try:
            file.write(text)
            file.close()
            # A temporary file is private; a study file has the rights any new file would have.
            mask = os.umask(0)
            os.umask(mask)
            draft.chmod(0o666 & ~mask)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
