"""Images made of programs that this machine has, for engines that can reach no registry."""

import io
import re
import subprocess
import tarfile
from pathlib import Path


def image_of(program: Path, name: str, entry: list[str]) -> None:
    """A program, the libraries that it is linked with and an empty /data, imported as an image."""
    import docker

    repository, _, tag = name.rpartition(":")
    client = docker.from_env()
    changes = ["WORKDIR /data", f"ENTRYPOINT {str(entry).replace(chr(39), chr(34))}"]
    client.api.import_image_from_data(_tar(program), repository=repository, tag=tag, changes=changes)
    client.close()


def _tar(program: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        _add(archive, program, "program")
        for library in _libraries(program):  # the loader is one of them
            _add(archive, library, str(library).lstrip("/"))
        folder = tarfile.TarInfo("data")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o777
        archive.addfile(folder)
    return packed.getvalue()


def _libraries(program: Path) -> list[Path]:
    told = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return sorted({path for word in re.findall(r"(/\S+)", told) if (path := Path(word)).is_file()})


def _add(archive: tarfile.TarFile, source: Path, name: str) -> None:
    content = source.resolve().read_bytes()
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o755
    archive.addfile(entry, io.BytesIO(content))
