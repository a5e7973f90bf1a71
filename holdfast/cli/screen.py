"""The terminal of one run, on the standard output as it was before pytest began to capture it."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from rich.console import Console

from holdfast.reports.terminal import Terminal


@contextmanager
def screen(*, wanted: bool) -> Iterator[Terminal | None]:
    """Shows a run while it lasts. None if its answer is for a machine.

    Checks end on a thread of their own, while pytest captures what an item prints: without a descriptor of its own the
    terminal would lose every line that comes at such a moment.
    """
    if not wanted:
        yield None
        return
    with ExitStack() as opened:
        terminal = Terminal(Console(file=_uncaptured(opened), highlight=False, markup=False, emoji=False))
        try:
            yield terminal
        finally:
            terminal.close()


def _uncaptured(opened: ExitStack) -> TextIO:
    """A second descriptor of the standard output; the output itself where it has none."""
    sys.stdout.flush()
    try:
        descriptor = os.dup(sys.stdout.fileno())
    except (OSError, io.UnsupportedOperation):
        return sys.stdout
    encoding, errors = sys.stdout.encoding, sys.stdout.errors
    return opened.enter_context(os.fdopen(descriptor, "w", encoding=encoding, errors=errors))
