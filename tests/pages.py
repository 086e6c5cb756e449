"""A page of documentation as a reader follows it: block after block, in one folder."""

import doctest
import re
import shlex
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from deeptobit.app.cli.app import app

_FENCE = re.compile(
    r'^```(?: \{ \.)?(?P<language>\w*)(?: title="(?P<title>[^"]+)")?(?: \})?\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
_PLAIN_FILE = re.compile(r"[\w-]+\.\w+")
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line on which its text begins."""

    language: str
    title: str | None
    text: str
    line: int

    @property
    def is_included(self) -> bool:
        """Whether the text comes from a source file, which has tests of its own."""
        return self.text.startswith("--8<--")

    @property
    def is_file(self) -> bool:
        """Whether the block is the content of a file that the reader is to write."""
        return self.title is not None and _PLAIN_FILE.fullmatch(self.title) is not None


def read_blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            found["language"],
            found["title"],
            found["text"],
            text.count("\n", 0, found.start("text")),
        )
        for found in _FENCE.finditer(text)
    ]


def read_commands(block: Block) -> list[str]:
    """The commands of a shell block, without comments; a backslash continues a line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [shlex.join(words) for line in lines if (words := shlex.split(line, comments=True))]


@dataclass
class Reader:
    """Runs what a page says; names stay from block to block, files in the current folder."""

    page: Path
    names: dict[str, Any] = field(default_factory=dict)
    output: str = ""

    def follow(self, block: Block) -> None:
        """Run a block, or write the file that it is."""
        if block.is_included:
            return
        if block.is_file:
            Path(str(block.title)).write_text(block.text, encoding="utf-8")
        elif block.language == "text":
            self._check_output(block)
        elif block.language == "python" and block.title is None:
            self._run_python(block)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.title is None:
            raise AssertionError(f"{self._where(block)}: nobody runs {block.language!r} blocks")

    def run_command(self, command: str) -> None:
        """Run ``deeptobit …`` in this process, on one core."""
        name, *arguments = shlex.split(command)
        if name != "deeptobit":
            raise AssertionError(f"{self.page.name}: nobody runs {command!r}")
        one_core = ["--jobs", "1"] if arguments[0] in ("fit", "evaluate") else []
        runner = CliRunner(env={"COLUMNS": "110"})
        result = runner.invoke(app, [*arguments, *one_core], catch_exceptions=False)
        found = arguments[0] == "check" and "error(s)" in result.output  # which it exits with 1 for
        worked = result.exit_code == int(found)
        assert worked, f"{self.page.name}: {command!r} failed\n{result.output}"
        self.output = result.output

    def _run_python(self, block: Block) -> None:
        if ">>>" not in block.text:
            source = "\n" * block.line + block.text  # tracebacks show lines of the page
            exec(compile(source, str(self.page), "exec"), self.names)
            return
        test = doctest.DocTestParser().get_doctest(
            block.text, {}, self.page.name, str(self.page), block.line
        )
        test.globs = self.names
        output: list[str] = []
        failed, _ = doctest.DocTestRunner(optionflags=_FLAGS).run(
            test, out=output.append, clear_globs=False
        )
        assert failed == 0, "".join(output)

    def _check_output(self, block: Block) -> None:
        """Whether the last command printed what the page says; … stands for anything."""
        expected = block.text.replace("…", "...")
        matches = doctest.OutputChecker().check_output(expected, self.output, _FLAGS)
        assert matches, f"{self._where(block)}: the last command printed\n{self.output}"

    def _where(self, block: Block) -> str:
        return f"{self.page.name}, line {block.line}"
