"""The command line in this process: what it prints and how it ends, for mistakes that end before anything starts."""

import contextlib
import io
import sys
from collections.abc import Iterator
from unittest import mock

from holdfast.cli.main import main


@contextlib.contextmanager
def _called(*words: str) -> Iterator[None]:
    with mock.patch.object(sys, "argv", ["holdfast", *words]):
        yield


def said(*words: str) -> tuple[int, str, str]:
    """Returns the exit code, the standard output and the standard error of `holdfast WORDS`."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with _called(*words), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue(), err.getvalue()
