"""Prometheus text under Toxiproxy's names; unlike in Toxiproxy, the bytes of open connections count at once."""

from collections.abc import Iterable, Iterator

from holdfast.chaos.relay.proxy import Proxy
from holdfast.chaos.relay.toxic import STREAMS

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
FAMILIES = {"received_bytes": "received_bytes", "sent_bytes": "bytes"}
ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", '"': '\\"'})


def proxy_metrics(proxies: Iterable[Proxy]) -> str:
    ordered = sorted(proxies, key=lambda proxy: proxy.name)
    return "".join(f"{line}\n" for family in FAMILIES for line in _family(family, ordered))


def _family(family: str, proxies: list[Proxy]) -> Iterator[str]:
    name = f"toxiproxy_proxy_{family}_total"
    yield f"# HELP {name} "
    yield f"# TYPE {name} counter"
    for stream in sorted(STREAMS):
        for proxy in proxies:
            labels = {"direction": stream, "listener": proxy.listen, "proxy": proxy.name, "upstream": proxy.upstream}
            shown = ",".join(f'{key}="{value.translate(ESCAPES)}"' for key, value in labels.items())
            yield f"{name}{{{shown}}} {proxy.transport.tally()[stream][FAMILIES[family]]}"


def runtime_metrics() -> str:
    from prometheus_client import generate_latest  # slow to import, and rarely asked for

    return generate_latest().decode()
