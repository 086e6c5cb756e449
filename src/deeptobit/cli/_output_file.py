"""Files that commands write."""

from pathlib import Path
from tempfile import TemporaryFile

from deeptobit.study import StudyError


def check_output(path: Path, force: bool, *others: Path, option: str = "--out") -> None:
    """Refuse, before any work is done, a file that is there or cannot be written.

    ``others`` are files that the command reads or writes beside it; ``option`` is the one that
    names another file.
    """
    if not path.parent.is_dir():
        raise StudyError(f"{path.parent}: there is no such folder; make it first")
    if any(path.resolve() == given.resolve() for given in others):
        raise StudyError(f"{path} is what the command reads or writes; {option} writes elsewhere")
    if path.is_dir():
        raise StudyError(f"{path} is a folder; {option} must name a file")
    if path.exists() and not force:
        raise StudyError(f"{path} exists; --force replaces it, {option} writes elsewhere")
    check_folder(path.parent, option)


def named(path: Path) -> Path:
    """A path that has a name to write beside: that of the folder it stands for, if it is . or .."""
    return path if path.name not in ("", "..") else path.resolve()


def check_folder(folder: Path, option: str = "--out") -> None:
    """Refuse a folder that takes no file; by trying, since rights alone do not tell."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StudyError(
            f"the folder {folder} cannot be written to ({error.strerror}); {option} writes "
            "elsewhere"
        ) from None
