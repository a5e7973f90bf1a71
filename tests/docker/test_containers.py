"""The suite and the scenarios with Redis and Toxiproxy in containers; skipped, loudly, where no Docker answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.chaos.engines import find_toxiproxy
from holdfast.fixtures.redis import find_server
from holdfast.target.deployment import StartError
from tests.docker.images import image_of
from tests.product.running import holdfast

pytest.importorskip("testcontainers", reason="testcontainers is not installed; tox -e docker brings it")
from holdfast.fixtures.containers import docker_answers, redis_container, toxiproxy_container

if not docker_answers():
    pytest.skip("NO DOCKER DAEMON answers here, so nothing was tried in containers", allow_module_level=True)

REDIS, TOXIPROXY = "holdfast/redis:test", "holdfast/toxiproxy:test"


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    image_of(find_server(None), REDIS, ["/program", "--protected-mode", "no", "--save", ""])
    with redis_container(REDIS) as url:
        yield url


def test_the_suite_runs_on_a_redis_in_a_container(tmp_path: Path, redis_url: str) -> None:
    rows = [word for id_ in ("AD-ADMIT-01", "AD-STATE-01", "AD-QUEUE-01") for word in ("--only", id_)]
    ended = holdfast(tmp_path, "run", "admission", "--redis-url", redis_url, "--results", "results", *rows)
    assert ended.code == 0, ended.text
    assert set(ended.verdicts().values()) == {"pass"}


def test_scenarios_run_on_a_toxiproxy_in_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        binary = find_toxiproxy()
    except StartError as problem:
        pytest.skip(str(problem))
    image_of(binary, TOXIPROXY, ["/program"])
    with toxiproxy_container(TOXIPROXY) as url:
        monkeypatch.setenv("TOXIPROXY_URL", url)
        words = ("chaos", "admission", "C3", "C7", "--engine", "toxiproxy", "--results", "results")
        ended = holdfast(tmp_path, *words)
    assert ended.code == 0, ended.text
    # `partial` is a row of which other scenarios were not asked for.
    verdicts = set(ended.verdicts().values())
    assert "pass" in verdicts
    assert verdicts <= {"pass", "partial"}
