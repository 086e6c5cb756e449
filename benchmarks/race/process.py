"""Work in forked processes, a few at once, that end when their time is over."""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from math import ceil
from tempfile import TemporaryFile
from typing import IO, Any, Generic, NamedTuple, NoReturn, TypeVar

_PAUSE = 0.02  # seconds between two looks at the children
_PATIENCE = 5.0  # seconds that may pass for every second of work: the machine may have other work
Job = TypeVar("Job")


class Ended(NamedTuple):
    """What became of a job.

    Attributes
    ----------
    result : object
        What the work returned; None if it did not.
    failure : str
        Why it did not, in words; empty if it did.
    timed_out : bool
        Whether it was stopped because its time was over.
    """

    result: Any
    failure: str = ""
    timed_out: bool = False


class _Child(NamedTuple, Generic[Job]):
    job: Job
    answer: IO[bytes]
    started: float


def run_in_children(
    jobs: Iterable[Job], work: Callable[[Job], Any], *, at_once: int, limit: float
) -> Iterator[tuple[Job, Ended]]:
    """Jobs and what became of them, in the order in which they end.

    Every job has a process of its own, forked from this one: an error, a crash or a job that takes
    more than ``limit`` seconds of processor time ends that process and what it has started, and
    nothing else. Jobs are drawn from the iterable when a process is free. Needs a system that can
    fork.
    """
    running: dict[int, _Child[Job]] = {}
    waiting = iter(jobs)
    try:
        while True:
            for job in islice(waiting, at_once - len(running)):
                pid, child = _start(job, work, limit)
                running[pid] = child
            if not running:
                return
            for pid in list(running):
                ended = _look_at(pid, running[pid], limit)
                if ended is not None:
                    yield running.pop(pid).job, ended
            if len(running) >= at_once:
                time.sleep(_PAUSE)
    finally:
        for pid in running:
            _kill(pid)


def _start(job: Job, work: Callable[[Job], Any], limit: float) -> tuple[int, _Child[Job]]:
    answer = TemporaryFile()  # noqa: SIM115  # closed when the child has ended
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # The threads of a linear algebra library are safe: it closes and reopens them at a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _be_child(job, work, answer, limit)
    return pid, _Child(job, answer, time.perf_counter())


def _be_child(job: Job, work: Callable[[Job], Any], answer: IO[bytes], limit: float) -> NoReturn:
    """Work in silence, leave the answer, and never return into the parent's code."""
    try:
        os.setsid()  # so that what it starts can be stopped with it
        seconds = ceil(limit)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        try:
            ended = Ended(work(job))
        except Exception as error:  # whatever it is, it is shown in the results
            ended = Ended(None, f"{type(error).__name__}: {error}")
        pickle.dump(ended, answer)
        answer.flush()
    finally:
        os._exit(0)


def _look_at(pid: int, child: _Child[Any], limit: float) -> Ended | None:
    """What became of a child, None if it still works."""
    done, status = os.waitpid(pid, os.WNOHANG)
    if done == 0:
        if time.perf_counter() - child.started <= _PATIENCE * limit:
            return None
        _kill(pid)
        child.answer.close()
        return _over(limit)
    with child.answer:
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            return _over(limit)
        if os.WIFSIGNALED(status):
            return Ended(None, f"ended by {signal.Signals(os.WTERMSIG(status)).name}")
        child.answer.seek(0)
        try:
            ended: Ended = pickle.load(child.answer)
        except EOFError:
            return Ended(None, "ended without an answer")
        return ended


def _over(limit: float) -> Ended:
    return Ended(None, f"over the limit of {limit:g} s", timed_out=True)


def _kill(pid: int) -> None:
    """End a child and its own children."""
    with suppress(ProcessLookupError):  # a child that has not come to its setsid yet
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
