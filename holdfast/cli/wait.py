"""`--wait`: a target that somebody starts at the same moment is waited for, instead of being told to be missing.

The descriptor is read again at each try: whoever starts the servers may write it only when they stand.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.run.option_values import OptionError
from holdfast.spec.catalogue import seconds
from holdfast.target.descriptor import Target, TargetError, builtin_path
from holdfast.target.preflight import not_reached, silent

_TRY_EVERY = 0.1


def wait_for(read: Callable[[], Target], named: str | None, wait: str | None) -> None:
    """Returns when the descriptor is there and every URL in it takes connections; raises TargetError if not in time.

    A descriptor that is there and wrong is refused at once, by whoever reads it.
    """
    if wait is None:
        return
    if not named:
        raise OptionError(f"--wait {wait}: there is no target to wait for; name one with --target")
    end = time.monotonic() + seconds(wait)
    problem = _missing(read, named)
    if problem:
        print(f"waiting up to {seconds(wait):g} s for {named}", file=sys.stderr, flush=True)
    while problem:
        if time.monotonic() > end:
            raise TargetError(f"{problem} (waited {seconds(wait):g} s)")
        time.sleep(_TRY_EVERY)
        problem = _missing(read, named)


def _missing(read: Callable[[], Target], named: str) -> str | None:
    if not (Path(named).exists() or builtin_path(named).is_file()):
        return f"{named}: there is no such descriptor"
    target = read()
    if urls := silent(target):
        return not_reached(target) or f"nothing listens at {', '.join(urls)}"
    return not_reached(target)
