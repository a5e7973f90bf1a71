import pytest

from holdfast.target.settings import read_setting, written


@pytest.mark.parametrize(
    ("seconds", "plain", "ms", "go", "iso"),
    [
        ("6", "6", "6000", "6s", "PT6S"),
        ("6.0", "6", "6000", "6s", "PT6S"),
        ("0.2", "0.2", "200", "200ms", "PT0.2S"),
        ("1.5", "1.5", "1500", "1.5s", "PT1.5S"),
        ("90", "90", "90000", "1m30s", "PT1M30S"),
        ("60", "60", "60000", "1m", "PT1M"),
        ("3600", "3600", "3600000", "1h", "PT1H"),
        ("86461.25", "86461.25", "86461250", "24h1m1.25s", "PT24H1M1.25S"),
        ("0", "0", "0", "0s", "PT0S"),
        ("-300", "-300", "-300000", "-5m", "-PT5M"),
        ("1e-05", "0.00001", "0", "0.01ms", "PT0.00001S"),
        ("1e+06", "1000000", "1000000000", "277h46m40s", "PT277H46M40S"),
    ],
)
def test_seconds_are_written_as_the_target_reads_them(seconds: str, plain: str, ms: str, go: str, iso: str) -> None:
    assert [written(seconds, unit) for unit in ("seconds", "ms", "go", "iso")] == [plain, ms, go, iso]


@pytest.mark.parametrize("value", ["30s", "{stub.gc}", "", "nan", "inf", "true"])
def test_what_is_no_number_of_seconds_stays_as_it_is(value: str) -> None:
    assert {written(value, unit) for unit in ("seconds", "ms", "go", "iso")} == {value}


def test_each_role_has_its_own_way() -> None:
    ways = [{"env": "A", "roles": ["api"], "unit": "ms"}, {"flag": "--a", "roles": ["worker"], "default": 3}]
    setting = read_setting("a", ways, ("api", "worker", "gc"))
    api, worker = setting.of("api"), setting.of("worker")
    assert api
    assert worker
    assert (api.env, api.written("2"), worker.flag, worker.default, worker.written("2")) == (
        "A",
        "2000",
        "--a",
        "3",
        "2",
    )
    assert setting.of("gc") is None
