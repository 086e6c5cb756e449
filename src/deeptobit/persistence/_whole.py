"""Files appear whole or not at all."""

import os
from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write beside the file, then rename: Ctrl-C or a full disk leaves what was there before.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "study.toml"), [b"[data]", b"rows = 5"])
    ...     [file.name for file in Path(folder).iterdir()]
    ['study.toml']
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        draft = Path(file.name)
        try:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            # A temporary file is private; this one has the rights any new file would have.
            mask = os.umask(0)
            os.umask(mask)
            draft.chmod(0o666 & ~mask)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
