"""What the descriptor gives us to work with: files of certificates and keys, which must be there and be what they say.

A certificate file that is missing is a mistake in the descriptor and not a fault of the target, so it is one sentence
before the first check. Paths that hold placeholders are known only once a deployment is up; until then they are left
alone (`fill` is None).
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from cryptography import x509

from holdfast.target.descriptor import Target
from holdfast.target.ready import ANY

# A credential with one of these endings is the name of a file, not the secret itself.
_FILE_ENDINGS = (".pem", ".crt", ".cer", ".key")
_BEGINNING = b"-----BEGIN "
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_PLACEHOLDER = re.compile(r"\{[^{}]+\}")

Fill = Callable[[str, str], str]


def wrong_file(target: Target, fill: Fill | None = None) -> str | None:
    """Returns what is wrong with the first file that can't be used, and where to mend it; None if all can."""
    for key, path in _files(target, fill):
        if problem := _problem(path):
            return f"{key}: {path} {problem}; mend it in {target.file}"
    return None


def _files(target: Target, fill: Fill | None) -> Iterator[tuple[str, Path]]:
    """Yields each file that the descriptor names, with the entry that names it."""
    first = target.nodes[0].name
    for name, value in target.credentials.items():
        if isinstance(value, str) and value.endswith(_FILE_ENDINGS) and not any(map(str.isspace, value)):
            nodes = [node.name for node in target.nodes] if "{node}" in value else [first]
            yield from _filled(f"[credentials] {name}", value, nodes, fill)
    for node in target.nodes:
        yield from _filled(f"[[node]] {node.name} ready_as", node.ready_as, [node.name], fill)
        ca = node.ready.options.get("ca", "") if node.ready else ""
        if ca != ANY:
            yield from _filled(f"[[node]] {node.name} ready ca", ca, [node.name], fill)


def _filled(key: str, value: str, nodes: list[str], fill: Fill | None) -> Iterator[tuple[str, Path]]:
    if not value:
        return
    if not _PLACEHOLDER.search(value):
        yield key, Path(value)
    elif fill is not None:
        for node in nodes:
            yield key, Path(fill(value, node))


def _problem(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        return f"can't be read ({error.strerror or type(error).__name__})"
    if _BEGINNING not in raw:
        return "is no PEM file"
    try:
        if _CERTIFICATE in raw:
            x509.load_pem_x509_certificates(raw)
    except ValueError:
        return "has a certificate that can't be read"
    return ""
