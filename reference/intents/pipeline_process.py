"""The fake pipeline, as a process of its own: started by a worker with `python -I -S`, it imports next to nothing.

Arguments: seconds until it is up, `fail` or `run`, seconds after which it ends by itself (empty: never). It writes one
line when it is up. It ends by itself when its worker is gone, which closes its standard input.
"""

import os
import select
import sys


def worker_gone_within(seconds: "float | None") -> bool:
    """Waits for the end of standard input; tells whether it came."""
    readable, _, _ = select.select([0], [], [], seconds)
    return bool(readable) and not os.read(0, 1)


def main(delay: str, how: str, exit_after: str) -> int:
    if worker_gone_within(float(delay)) or how == "fail":
        return 1
    os.write(1, b"up\n")
    worker_gone_within(float(exit_after) if exit_after else None)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
