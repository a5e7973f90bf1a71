"""The examples for many machines: they can be read, fit each other, and their commands have options that exist."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from holdfast.cli.main import app

FOLDER = Path(__file__).parents[2] / "docs" / "load"
HELP = CliRunner().invoke(app, ["load", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
    return read


def manifests() -> dict[str, Any]:
    documents = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text("utf-8"))
    return {document["kind"]: document for document in documents}


def container(kind: str) -> dict[str, Any]:
    only: dict[str, Any] = manifests()[kind]["spec"]["template"]["spec"]["containers"][0]
    return only


def commands() -> Iterator[list[str]]:
    for service in compose()["services"].values():
        yield shlex.split(service["command"])
    for kind in ("Job", "Deployment"):
        yield [*container(kind)["command"], *container(kind).get("args", [])]


@pytest.mark.parametrize("words", list(commands()))
def test_every_command_has_options_that_exist(words: list[str]) -> None:
    assert words[:3] == ["holdfast", "load", "admission"]
    assert all(word in HELP for word in words if word.startswith("--"))


def test_the_master_waits_for_as_many_workers_as_there_are() -> None:
    services = compose()["services"]
    master = shlex.split(services["master"]["command"])
    assert int(master[master.index("--processes") + 1]) == services["worker"]["deploy"]["replicas"]
    arguments = container("Job")["args"]
    assert int(arguments[arguments.index("--processes") + 1]) == manifests()["Deployment"]["spec"]["replicas"]


def test_workers_find_the_master_by_its_name() -> None:
    worker = shlex.split(compose()["services"]["worker"]["command"])
    assert worker[worker.index("--master-host") + 1] in compose()["services"]
    assert container("Deployment")["command"][-1] == manifests()["Service"]["metadata"]["name"]


def test_only_workers_reach_the_master() -> None:
    policy, workers = manifests()["NetworkPolicy"]["spec"], manifests()["Deployment"]["spec"]["template"]["metadata"]
    (rule,) = policy["ingress"]
    assert rule["from"] == [{"podSelector": {"matchLabels": workers["labels"]}}]
    assert policy["podSelector"]["matchLabels"] == manifests()["Service"]["spec"]["selector"]
