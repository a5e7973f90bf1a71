"""The bundle tool: `python -m holdfast.reference.lockd.bundle new ca|server|tcclient|client --out FILE …`.

`--force` replaces an existing file; a server bundle keeps its node id then.
"""

import argparse
import os
import sys
from pathlib import Path

from holdfast.reference.lockd.issue import EVERYTHING, Issuer
from holdfast.reference.shared.program import violations, with_violations
from holdfast.reference.shared.settings import BadSetting

NAMES = {"ca": "lockd-ca", "server": "lockd-server", "tcclient": "lockd-tc-client", "client": "lockd-client"}


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bundle", description="Make a bundle, or replace one.")
    parser.add_argument("verb", choices=["new"])
    parser.add_argument("kind", choices=list(NAMES))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--ca-in", type=Path)
    parser.add_argument("--cn", default="")
    parser.add_argument("--hosts", default="*", help="host names and addresses, separated by commas")
    parser.add_argument("--namespace", action="append", default=[], help="NAME or NAME=r|w|rw; `client` only")
    parser.add_argument("--rw-all", action="store_true", help="write access to every namespace; `client` only")
    parser.add_argument("--force", action="store_true", help="overwrite")
    parser.add_argument("--violate", default="", help="make the bundle with one named violation")
    return parser.parse_args(argv)


def _claims(asked: argparse.Namespace) -> list[str]:
    if asked.rw_all:
        return [EVERYTHING]
    pairs = [each.partition("=") for each in asked.namespace or ["default"]]
    return [f"lockd://ns/{name}?perm={permission or 'rw'}" for name, _, permission in pairs]


def _made(issuer: Issuer, asked: argparse.Namespace) -> bytes:
    name = asked.cn or NAMES[asked.kind]
    if asked.kind == "ca":
        return issuer.authority(name)
    if asked.ca_in is None:
        raise BadSetting("--ca-in is missing: name the CA bundle that signs.")
    if asked.kind == "server":
        return issuer.server(asked.ca_in, name, [each.strip() for each in asked.hosts.split(",")], asked.out)
    if asked.kind == "tcclient":
        return issuer.tc_client(asked.ca_in, name)
    return issuer.sdk_client(asked.ca_in, name, _claims(asked))


def _issuer(violate: str) -> Issuer:
    """Returns the issuer; components are imported here, because most calls of the tool are about a good bundle."""
    from holdfast.reference.lockd.components import MUTANTS, Components

    _, names = violations([], {"VIOLATE": violate})
    return with_violations(Components(), names, MUTANTS).issuer()


def _check_free(path: Path, *, force: bool) -> None:
    if path.exists() and not force:
        raise BadSetting(f"{path} exists; --force replaces it.")


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def main(argv: list[str]) -> int:
    asked = _arguments(argv)
    try:
        _check_free(asked.out, force=asked.force)
        _write(asked.out, _made(_issuer(asked.violate or os.environ.get("VIOLATE", "")), asked))
    except (BadSetting, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
