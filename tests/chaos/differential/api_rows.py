"""Scripts of API calls. Each starts on a server without proxies; every answer is compared.

`{a}`, `{b}`, `{busy}` and `{upstream}` are ports; everything is on 127.0.0.1.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    body: str = ""
    agent: str = "differential"
    differs: str = ""  # the reason in `differences`, where the answers differ on purpose


def get(path: str) -> Call:
    return Call("GET", path)


def post(path: str, body: str = "") -> Call:
    return Call("POST", path, body)


def patch(path: str, body: str) -> Call:
    return Call("PATCH", path, body)


def differs(reason: str, call: Call) -> Call:
    return replace(call, differs=reason)


def delete(path: str) -> Call:
    return Call("DELETE", path)


P = '{"name":"p","listen":"127.0.0.1:{a}","upstream":"127.0.0.1:{upstream}"}'
Q = '{"name":"q","listen":"127.0.0.1:{b}","upstream":"127.0.0.1:{upstream}"}'


def more(proxy: str, fields: str) -> str:
    return f"{proxy.removesuffix('}')},{fields}}}"


MAKE = post("/proxies", P)
TOXICS = "/proxies/p/toxics"
SLICER = '{"type":"slicer","name":"s3","attributes":{"average_size":10,"size_variation":10}}'

SCRIPTS: dict[str, list[Call]] = {
    "routes": [
        get("/version"),
        get("/version?x=1"),
        get("/"),
        get("/proxies"),
        get("/proxies/"),
        get("/nothing"),
        get("/proxies/p/nothing"),
        get("//version"),
        get("/proxies/../version"),
        get("/reset"),
        get("/populate"),
        Call("PUT", "/proxies"),
        Call("HEAD", "/proxies"),
        Call("HEAD", "/version"),
        Call("OPTIONS", "/version"),
        Call("PUT", "/proxies/p"),
        Call("PUT", "/proxies/p/toxics/t"),
        Call("DELETE", "/proxies"),
        Call("POST", "/version"),
        Call("GET", "/proxies", agent="Mozilla/5.0"),
        Call("GET", "/version", agent="Mozilla/5.0"),
        Call("PUT", "/proxies", agent="Mozilla/5.0"),
        Call("GET", "/nothing", agent="Mozilla/5.0"),
        Call("GET", "/version", agent="mozilla/5.0"),
        Call("GET", "/version", agent="curl Mozilla/5.0"),
    ],
    "create": [
        post("/proxies"),
        post("/proxies", "   "),
        post("/proxies", "{"),
        post("/proxies", "null"),
        post("/proxies", "[]"),
        post("/proxies", '"p"'),
        post("/proxies", "{}"),
        post("/proxies", '{"upstream":"127.0.0.1:1"}'),
        post("/proxies", '{"name":"p"}'),
        post("/proxies", '{"name":"","upstream":""}'),
        post("/proxies", '{"name":1,"upstream":"127.0.0.1:1"}'),
        post("/proxies", '{"name":"p","upstream":"127.0.0.1:1","enabled":"yes"}'),
        post("/proxies", '{"name":"p","upstream":"127.0.0.1:1","enabled":1}'),
        MAKE,
        MAKE,
        post("/proxies", '{"name":"p","upstream":"x:1","listen":"nonsense"}'),
        post("/proxies", '{"name":"x","upstream":"x:1","listen":"127.0.0.1:{busy}"}'),
        post("/proxies", '{"name":"x","upstream":"x:1","listen":"127.0.0.1:99999"}'),
        post("/proxies", '{"name":"x","upstream":"x:1","listen":"127.0.0.1:-1"}'),
        post("/proxies", '{"name":"x","upstream":"x:1","listen":"nonsense"}'),
        post("/proxies", '{"name":"x","upstream":"x:1","listen":"1:2:3"}'),
        post("/proxies", '{"name":"x","upstream":"x:1","listen":"127.0.0.1:nosuchservice"}'),
        post("/proxies", '{"name":"x","upstream":"x:1","listen":"203.0.113.1:1"}'),
        get("/proxies/x"),
        get("/proxies"),
        get("/proxies/p"),
        delete("/proxies/p"),
        delete("/proxies/p"),
        get("/proxies/p"),
        get("/proxies"),
    ],
    "host names": [
        post("/proxies", '{"name":"p","upstream":"localhost:{upstream}","listen":"localhost:{a}"}'),
        post("/proxies/p", '{"listen":"localhost:{a}"}'),
        post("/proxies/p", '{"listen":"127.0.0.1:{a}"}'),
    ],
    "update a proxy": [
        post("/proxies/p", "{}"),
        MAKE,
        post("/proxies/p", ""),
        post("/proxies/p", "{"),
        post("/proxies/p", '{"enabled":3}'),
        post("/proxies/p", '{"listen":3}'),
        post("/proxies/p", "{}"),
        patch("/proxies/p", "null"),
        patch("/proxies/p", '{"name":"other"}'),
        patch("/proxies/p", '{"enabled":false}'),
        patch("/proxies/p", '{"enabled":false}'),
        patch("/proxies/p", '{"upstream":"127.0.0.1:1"}'),
        get("/proxies/p"),
        patch("/proxies/p", '{"enabled":true}'),
        patch("/proxies/p", '{"upstream":""}'),
        patch("/proxies/p", '{"listen":"127.0.0.1:{b}"}'),
        post(TOXICS, '{"type":"noop"}'),
        patch("/proxies/p", '{"listen":"127.0.0.1:{busy}"}'),
        get("/proxies/p"),
        patch("/proxies/p", '{"enabled":true}'),
        patch("/proxies/p", '{"listen":"nonsense"}'),
        get("/proxies/p"),
        patch("/proxies/p", '{"listen":"127.0.0.1:{a}"}'),
        patch("/proxies/p", '{"listen":"127.0.0.1:{a}","enabled":true}'),
        patch("/proxies/p", '{"listen":"127.0.0.1:99999"}'),
        get("/proxies/p"),
        patch("/proxies/p", '{"listen":"127.0.0.1:0"}'),
        patch("/proxies/p", '{"listen":""}'.replace('""', '"127.0.0.1:0"')),
    ],
    "add toxics": [
        post(TOXICS, '{"type":"noop"}'),
        get(TOXICS),
        MAKE,
        get(TOXICS),
        post(TOXICS, ""),
        post(TOXICS, "{"),
        post(TOXICS, "[]"),
        post(TOXICS, "null"),
        post(TOXICS, "{}"),
        post(TOXICS, '{"type":"Latency"}'),
        post(TOXICS, '{"type":"nothing","stream":"sideways"}'),
        post(TOXICS, '{"type":"noop","stream":""}'),
        post(TOXICS, '{"type":"noop","stream":null}'),
        post(TOXICS, '{"type":"noop"}'),
        post(TOXICS, '{"type":"noop","stream":"UPSTREAM"}'),
        post(TOXICS, '{"type":"noop","stream":"upstream"}'),
        post(TOXICS, '{"type":"latency","stream":"upstream","name":"noop_downstream"}'),
        post(TOXICS, '{"type":"latency","stream":"upstream","name":"noop_downstream","attributes":[]}'),
        post(TOXICS, '{"type":"latency","attributes":{"latency":"x"},"name":"noop_downstream"}'),
        post(TOXICS, '{"type":"nothing","stream":"sideways","attributes":[]}'),
        post(TOXICS, '{"type":"nothing","attributes":{"latency":"x"}}'),
        post(TOXICS, '{"type":"latency","attributes":[]}'),
        post(TOXICS, '{"type":"latency","attributes":"x"}'),
        post(TOXICS, '{"type":"latency","attributes":{"latency":1.5}}'),
        post(TOXICS, '{"type":"latency","attributes":{"latency":1.0}}'),
        post(TOXICS, '{"type":"latency","attributes":{"latency":1e3}}'),
        post(TOXICS, '{"type":"latency","attributes":{"latency":"1"}}'),
        post(TOXICS, '{"type":"latency","attributes":{"latency":true}}'),
        post(TOXICS, '{"type":"latency","attributes":{"latency":9223372036854775808}}'),
        post(TOXICS, '{"type":"latency","attributes":{"latency":9223372036854775807}}'),
        post(TOXICS, '{"type":"latency","name":"l2","attributes":{"LATENCY":-5,"jitter":null,"more":7}}'),
        post(TOXICS, '{"type":"latency","name":"l3","attributes":null,"toxicity":0.1}'),
        post(TOXICS, '{"type":"bandwidth","toxicity":7.25}'),
        post(TOXICS, '{"type":"slow_close","toxicity":-1,"attributes":{"delay":100}}'),
        post(TOXICS, '{"type":"timeout","toxicity":0,"attributes":{"timeout":-1}}'),
        post(TOXICS, '{"type":"reset_peer","toxicity":0.3333333333333,"attributes":{"timeout":100}}'),
        post(TOXICS, '{"type":"limit_data","toxicity":1e-7,"attributes":{"bytes":100}}'),
        post(
            TOXICS, '{"type":"slicer","toxicity":1e30,"attributes":{"average_size":64,"size_variation":32,"delay":10}}'
        ),
        post(TOXICS, '{"type":"noop","name":"t1","toxicity":1e-5}'),
        post(TOXICS, '{"type":"noop","name":"t2","toxicity":16777217}'),
        post(TOXICS, '{"type":"noop","name":"t3","toxicity":123456789012345678}'),
        post(TOXICS, '{"type":"noop","name":"t4","toxicity":1e39}'),
        post(TOXICS, '{"type":"noop","name":"t5","toxicity":"1"}'),
        post(TOXICS, '{"type":"noop","name":"t6","toxicity":null}'),
        post(TOXICS, '{"type":"noop","name":7}'),
        post(TOXICS, '{"type":"noop","name":"a b/c"}'),
        get(TOXICS),
        get("/proxies/p"),
        get(TOXICS + "/l2"),
        get(TOXICS + "/none"),
        get("/proxies/none/toxics/l2"),
        delete(TOXICS + "/none"),
        delete("/proxies/none/toxics/l2"),
        delete(TOXICS + "/l2"),
        delete(TOXICS + "/l2"),
        post("/reset"),
        get("/proxies/p"),
    ],
    "update toxics": [
        MAKE,
        post(TOXICS, '{"type":"latency","name":"l","attributes":{"latency":100,"jitter":5}}'),
        post(TOXICS + "/none", "{}"),
        post("/proxies/none/toxics/l", "{}"),
        post(TOXICS + "/none", "{"),
        post(TOXICS + "/l", ""),
        post(TOXICS + "/l", "{"),
        post(TOXICS + "/l", "{}"),
        patch(TOXICS + "/l", "null"),
        patch(TOXICS + "/l", '{"attributes":{"jitter":7}}'),
        patch(
            TOXICS + "/l", '{"attributes":{"latency":9},"toxicity":0.5,"name":"m","type":"noop","stream":"upstream"}'
        ),
        patch(TOXICS + "/l", '{"toxicity":"x"}'),
        patch(TOXICS + "/l", '{"attributes":[]}'),
        patch(TOXICS + "/l", '{"attributes":null}'),
        patch(TOXICS + "/l", '{"stream":7}'),
        get(TOXICS + "/l"),
        patch(TOXICS + "/l", '{"attributes":{"latency":200,"jitter":"bad"}}'),
        differs("refused update", get(TOXICS + "/l")),
    ],
    "slicer values that end 2.12 when data flows": [
        MAKE,
        differs("slicer", post(TOXICS, '{"type":"slicer","attributes":{"average_size":0}}')),
        differs(
            "slicer", post(TOXICS, SLICER.replace('"size_variation":10', '"size_variation":11').replace("s3", "s2"))
        ),
        post(TOXICS, SLICER),
        differs("slicer", post(TOXICS + "/s3", '{"attributes":{"average_size":-1}}')),
        differs("slicer", get(TOXICS)),
    ],
    "types of ours": [
        MAKE,
        differs("ours", post(TOXICS, '{"type":"blackhole"}')),
        differs("ours", post(TOXICS, '{"type":"refuse"}')),
        post(TOXICS, '{"type":"packet_loss"}'),
        differs("ours", get("/counters")),
        differs("ours", get("/proxies/p/counters")),
        differs("ours", post("/proxies/p/reset")),
        differs("ours", post("/proxies/p/rebind")),
        differs("ours", post("/proxies", more(Q, '"strict":true,"initial_toxics":[{"type":"noop"}]'))),
    ],
    "populate": [
        post("/populate"),
        post("/populate", "{"),
        post("/populate", "{}"),
        post("/populate", "null"),
        post("/populate", "[]"),
        post("/populate", "[1]"),
        post("/populate", '[{"name":"p","upstream":"x:1"},{"name":"q"}]'),
        post("/populate", '[{"name":"p","upstream":"x:1"},{"upstream":"x:1"}]'),
        post("/populate", "[null]"),
        get("/proxies"),
        post("/populate", f"[{P},{Q}]"),
        post(TOXICS, '{"type":"noop"}'),
        post("/populate", f"[{P},{Q}]"),
        post("/populate", "[" + more(P, '"enabled":false') + "]"),
        get("/proxies/p"),
        patch("/proxies/p", '{"enabled":false}'),
        post("/populate", f"[{P}]"),
        post("/populate", "[" + P.replace("{upstream}", "1") + "]"),
        get("/proxies/p"),
        post("/populate", f'[{P},{{"name":"r","listen":"127.0.0.1:{{busy}}","upstream":"x:1"}},{Q}]'),
        post("/populate", f'[{P},{{"name":"r","listen":"nonsense","upstream":"x:1"}},{Q}]'),
        post("/populate", '[{"name":"q","listen":"127.0.0.1:{busy}","upstream":"x:1"}]'),
        get("/proxies"),
        post("/populate", '[{"name":"z","listen":"127.0.0.1:0","upstream":"x:1"}]'),
        post("/populate", '[{"name":"z","listen":"127.0.0.1:0","upstream":"x:1"}]'),
    ],
    "reset": [
        post("/reset"),
        MAKE,
        post("/proxies", more(Q, '"enabled":false')),
        post(TOXICS, '{"type":"noop"}'),
        post("/proxies/q/toxics", '{"type":"timeout","stream":"upstream"}'),
        post("/reset", "ignored"),
        get("/proxies"),
    ],
    "reset with a proxy that cannot listen": [
        post("/proxies", '{"name":"p","listen":"127.0.0.1:{busy}","upstream":"x:1","enabled":false}'),
        post("/reset"),
        get("/proxies"),
    ],
    "metrics": [
        differs("metrics", Call("POST", "/metrics")),
        Call("HEAD", "/metrics"),
        MAKE,
        differs("metrics", get("/metrics")),
    ],
    "create, the JSON reading rules": [
        post("/proxies", '{"NAME":"a","Upstream":"x:1","ENABLED":false,"lisTen":"127.0.0.1:0"} and more'),
        post("/proxies", '{"name":"z","name":"b","upstream":"x:1","enabled":false,"listen":"127.0.0.1:0","what":[1]}'),
        post("/proxies", '{"name":"c","name":null,"upstream":"x:1","enabled":false,"listen":null}'),
        post(
            "/proxies", '{"name":"d","upstream":"x:1","enabled":null,"listen":"127.0.0.1:0","toxics":[{"type":"noop"}]}'
        ),
        post("/proxies", '{"name":"e","upstream":"x:1","enabled":false,"listen":"localhost:0"}'),
        post(
            "/proxies",
            '{"name":"f <&> \u00e9 \\u2028 \\"","upstream":"rubbish","enabled":false,"listen":"127.0.0.1:0"}',
        ),
        post("/proxies", '{"name":"g","upstream":"x:1","enabled":false,"listen":"nonsense"}'),
        post("/proxies", '{"name":"h/i","upstream":"x:1","enabled":false,"listen":"127.0.0.1:0"}'),
        get("/proxies"),
        get("/proxies/A"),
        get("/proxies/f%20%3C&%3E%20%C3%A9%20%E2%80%A8%20%22"),
        get("/proxies/h/i"),
        get("/proxies/h%2Fi"),
        post("/proxies", '{"name":"n","upstream":"x:1","enabled":false,"listen":"127.0.0.1:0"}{"name":"m"}'),
        post("/proxies", "NaN"),
        post("/proxies", "{'name':'x'}"),
        post("/proxies", '{"name":"x","upstream":"x:1",}'),
    ],
}
