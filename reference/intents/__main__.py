"""`python -m holdfast.reference.intents api` and `… worker`: the two processes of the reference."""

import sys

from holdfast.reference.intents import api, worker

ROLES = {"api": api.main, "worker": worker.main}


def main(argv: list[str]) -> None:
    if not argv or argv[0] not in ROLES:
        sys.stderr.write(f"Say which process is to run, {' or '.join(ROLES)}, for example: … intents worker\n")
        raise SystemExit(2)
    ROLES[argv[0]](argv[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
