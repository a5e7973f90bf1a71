from pathlib import Path

from holdfast.preflight import no_program
from holdfast.target import Target, builtin_path, load

STARTED = """
[target]
name = "mine"
spec = "lockd"
[[node]]
urls = {{ https = "https://127.0.0.1:{{port}}" }}
start = {start}
"""


def started_by(folder: Path, start: str) -> Target:
    path = folder / "mine.toml"
    path.write_text(STARTED.format(start=start))
    return load(path)


def test_a_program_that_is_not_there_is_named_with_the_file_and_the_remedy(tmp_path: Path) -> None:
    target = started_by(tmp_path, '"no-such-program --listen {port}"')
    assert no_program(target) == (
        f"there is no program no-such-program on PATH: install it, or mend [[node]] start in {tmp_path / 'mine.toml'}"
    )


def test_programs_that_are_there_or_stand_behind_a_placeholder_pass(tmp_path: Path) -> None:
    assert no_program(started_by(tmp_path, '["sh", "-c", "exit"]')) is None
    assert no_program(started_by(tmp_path, '"{dir}/server"')) is None
    assert no_program(load(builtin_path("lockd"))) is None
