"""What the descriptor gives us and can't be used is one sentence before the first check."""

from pathlib import Path

import pytest

from holdfast.fixtures.certs import make_certificates
from holdfast.run.credentials import hands_credentials_over
from holdfast.target.credential_files import wrong_file
from holdfast.target.descriptor import Target, TargetError, load
from holdfast.target.preflight import not_there
from tests.pages import ROOT

DESCRIPTOR = """
[target]
name = "mine"
spec = "lockd"
[[node]]
names = ["a", "b"]
urls = {{ https = "https://127.0.0.1:1" }}
{node}
[credentials]
{credentials}
{more}
"""


def target(folder: Path, credentials: str = "", node: str = "", more: str = "") -> Target:
    path = folder / "mine.toml"
    path.write_text(DESCRIPTOR.format(credentials=credentials, node=node, more=more))
    return load(path)


def test_a_file_that_is_not_there_is_named_with_its_entry(tmp_path: Path) -> None:
    missing = tmp_path / "ca.pem"
    said = f"[credentials] ca: {missing} can't be read (No such file or directory); mend it in {tmp_path / 'mine.toml'}"
    assert not_there(target(tmp_path, f'ca = "{missing}"')) == said


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("junk", "is no PEM file"),
        (
            "-----BEGIN CERTIFICATE-----\njunk\n-----END CERTIFICATE-----\n",
            "has a certificate that can't be read",
        ),
    ],
)
def test_a_file_that_is_no_certificate_is_named(tmp_path: Path, content: str, problem: str) -> None:
    file = tmp_path / "client.pem"
    file.write_text(content)
    assert problem in str(wrong_file(target(tmp_path, node=f'ready_as = "{file}"')))


def test_files_with_placeholders_are_looked_at_once_they_are_known(tmp_path: Path) -> None:
    folder = make_certificates(tmp_path / "certs")
    found = target(tmp_path, 'server_bundle = "{dir}/{node}.pem"')
    assert wrong_file(found) is None
    assert wrong_file(found, lambda _text, _node: str(folder / "ca.pem")) is None
    asked: list[str] = []

    def fill(_text: str, node: str) -> str:
        asked.append(node)
        return str(folder / ("ca.pem" if node == "a" else "none.pem"))

    assert "none.pem" in str(wrong_file(found, fill))
    assert asked == ["a", "b"]


def test_a_secret_is_no_file(tmp_path: Path) -> None:
    assert wrong_file(target(tmp_path, 'bundle_tool = "make x.pem y.pem"')) is None


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ('[not_offered]\n"TC-NONE-01" = "x"', "no requirement or group of lockd"),
        ('[not_offered]\n"TC-STEP-06#9" = "x"', "there is no such part"),
        ('[not_offered]\nmetrics = ""', "say why"),
        ('[windows]\nleave = "soon"', "is no duration"),
        ("[windows]\nleave = 45", "must be text"),
        ('[windows]\nleaves = "45s"', "did you mean 'leave'"),
    ],
)
def test_entries_that_mean_nothing_are_refused(tmp_path: Path, more: str, complaint: str) -> None:
    with pytest.raises(TargetError, match=complaint):
        target(tmp_path, more=more)


def test_windows_are_real_seconds_and_causes_may_be_anything(tmp_path: Path) -> None:
    more = '[windows]\nleave = "45s"\n[not_offered]\n"admin calls" = "there are none"\n"TC-RM" = "no registry"'
    found = target(tmp_path, more=more)
    assert found.windows == {"leave": 45.0}
    assert found.not_offered.of_cause("admin calls") == "not offered: there are none"
    assert found.not_offered.of_cause("admin calls: PUT") == "not offered: there are none"
    assert found.not_offered.of_cause("[observe] redis") == ""


@pytest.mark.parametrize(
    ("started_with", "same"),
    [
        ("serve --token {credentials.admin_token} --secret {credentials.auth_secret}", True),
        ("serve --token {credentials.admin_token} --secret of-its-own", False),
        ("serve --config mine.yaml", False),
    ],
)
def test_a_secret_that_no_start_command_names_may_be_another_one_there(
    tmp_path: Path, started_with: str, same: bool
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(
        f"""[target]
name = "mine"
spec = "admission"
[[node]]
name = "a"
urls = {{ http = "http://127.0.0.1:{{port}}" }}
start = "{started_with}"
[credentials]
admin_token = "token"
auth_secret = "secret"
"""
    )
    assert hands_credentials_over(load(path)) is same


@pytest.mark.parametrize("key", ["admission", "lockd"])
def test_the_references_have_their_credentials_from_the_descriptor(key: str) -> None:
    assert hands_credentials_over(load(ROOT / f"fixtures/targets/{key}.toml"))
