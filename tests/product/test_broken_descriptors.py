"""Broken descriptors and mixes of options, as a new user gets them wrong: one sentence and the right exit code.

Most end before anything is started and are tried in this process, with `doctor` and with `run`. Where the mistake shows
only on the wire (a port, a certificate, a credential), something listens and the command is a process of its own.
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from holdfast.conformance.lockd.bundles import make_bundles
from holdfast.fixtures.certs import make_certificates
from tests.kernel.said import said
from tests.product.running import Ended, holdfast

ADMISSION = """[target]
name = "mine"
spec = "admission"
[[node]]
name = "a"
urls = { http = "http://127.0.0.1:1" }
[credentials]
auth_secret = "secret"
admin_token = "token"
"""
LOCKD = """[target]
name = "mine"
spec = "lockd"
[[node]]
name = "a"
urls = { https = "https://127.0.0.1:1" }
[credentials]
ca = "ca.pem"
"""
BOTH = {"admission": ADMISSION, "lockd": LOCKD}
SECTION, PORT = "[credentials]", "127.0.0.1:1"


def before(text: str) -> tuple[str, str]:
    """A change that adds a section."""
    return SECTION, f"{text}\n{SECTION}"


# What is wrong in a descriptor of any spec, and what the sentence says of it.
OF_ANY_SPEC = [
    (("[[node]]", "[node]"), "[node] must be a list: write [[node]]"),
    (("[target]", "[targt]"), "[targt]: no such section; did you mean 'target'?"),
    ((SECTION, "[credential]"), "[credential]: no such section; did you mean 'credentials'?"),
    ((SECTION, "[[credentials]]"), "[credentials] must be a table"),
    (("[target]", "[target"), "not valid TOML: Expected ']'"),
    (('name = "mine"\n', ""), "[target] name: missing (what the report calls it)"),
    (('name = "mine"', 'name = ""'), "[target] name: empty"),
    (('name = "mine"', 'name = "mine"\ntime_scale = 0'), "[target] time_scale: 0 is not above 0 and at most 1"),
    (('name = "mine"', 'name = "mine"\ntime_scale = true'), "[target] time_scale: must be a number"),
    (('name = "mine"', 'name = "mine"\nprofile = "wir"'), "[target] profile: 'wir' is none of wire, store"),
    (("spec = ", "version = 1\nspec = "), "[target] version: must be text"),
    (('name = "a"', 'nmae = "a"'), "[[node]] 1 nmae: no such key; did you mean 'name'?"),
    (('name = "a"', "names = []"), "[[node]] 1 names: must be names"),
    (('name = "a"', 'name = "a b"'), "[[node]] a b: a name of a node or role has letters"),
    (('name = "a"', 'names = ["a", "a"]'), "[[node]] a: is there twice; give each node its own name"),
    (('name = "a"', 'name = "redis"'), "[[node]] redis: means another part of a deployment"),
    (("urls = ", "url = "), "[[node]] a url: no such key; did you mean 'urls'?"),
    (("urls = {", "urls = { htp = 3,"), "[[node]] a urls htp: must be text"),
    (("://127.0.0.1:1", ""), "has no scheme; write it like"),
    (("127.0.0.1:1", "127.0.0.1:70000"), "is no URL (Port out of range 0-65535)"),
    (('name = "a"', 'name = "a"\nready = { tpc = "x" }'), "[[node]] ready: name one of http, tcp, grpc"),
    (('name = "a"', 'name = "a"\nready = { tcp = "grpc" }'), "[[node]] a ready: tcp needs a URL 'grpc'; urls has"),
    (('name = "a"', 'name = "a"\nready = { log = "(" }'), "is no regular expression"),
    (('name = "a"', 'name = "a"\nmetrics = { url = "ops", path = "/m" }'), "[[node]] a metrics: no URL 'ops'"),
    (('name = "a"', 'name = "a"\nafter = ["gc"]'), "[[node]] a after: no node has the role 'gc'"),
    (('name = "a"', 'name = "a"\nstart = ""'), "[[node]] a start: empty; write the command"),
    (('name = "a"', 'name = "a"\nstart = { python = "x" }'), 'names no function; write "package.module:function"'),
    (('name = "a"', 'name = "a"\nenv = { A = [] }'), "[[node]] a env A: must be text or a number"),
    (before('[observe]\nredis = "localhost"'), "[observe] redis: 'localhost' is no such URL"),
    (before('[observe]\nevents = "stdout"'), '[observe] events: "stdout" is that of nodes which Holdfast starts'),
    (before('[links]\nproxies = { a-c = "x" }'), "[links] proxies: a-c: no such link"),
    (before('[store]\nkind = "sentinel"'), "[store]: Holdfast gives a store only to nodes that it starts"),
    (before('[timings]\nnosuch = "1s"'), "[timings] nosuch: no such timing of"),
    (before("[limits]\nnosuch = 1"), "[limits] nosuch: no such limit of"),
    (before('[settings]\nx = { envv = "X" }'), "[settings] x: write { env ="),
    (before('[files]\nx = "y"'), '[files] x: write "package.module:function"'),
    (before('[windows]\nleave = "soon"'), "[windows] leave: "),
    (before("[dialect]\nopenap = true"), "[dialect] openap: no such key; did you mean 'openapi'?"),
    (before('[dialect]\nopenapi = "yes"'), "[dialect] openapi: must be boolean"),
    (before("[query]\nx = 5"), "[query] x: write exactly one of"),
    (before('[not_offered]\nmetrics = ""'), "[not_offered] metrics: say why"),
    (before('[known_failures]\n"XX-NONE-01" = { reason = "x" }'), "[known_failures] XX-NONE-01: no requirement of"),
    ((f"{SECTION}\n", f'{SECTION}\nbundel_tool = "x"\n'), "[credentials] bundel_tool: no such key"),
]
# What only one spec has.
OF_ONE_SPEC = [
    ("admission", ("http = ", "htp = "), "[[node]] a urls htp: no check uses such a URL; did you mean 'http'?"),
    (
        "admission",
        before('[timings]\ngrase = "3s"'),
        "[timings] grase: no such timing of admission; did you mean 'grace'?",
    ),
    ("admission", before('[settings]\ngrase = { env = "G" }'), "[settings] grase: no such setting of admission"),
    ("admission", before('[dialect]\nname = "contrakt"'), "[dialect] name: 'contrakt' is none of 'contract'"),
    ("admission", before('[known_failures]\n"AD-RAT-03" = { reason = "x" }'), "did you mean 'AD-RATE-03'?"),
    ("admission", ('"token"', '"env:HOLDFAST_NOT_SET"'), "the environment variable HOLDFAST_NOT_SET is not set"),
    ("lockd", ("https = ", "htps = "), "[[node]] a urls htps: no check uses such a URL; did you mean 'https'?"),
    ("lockd", ("https = ", "http = "), "[[node]] a urls http: 'https://127.0.0.1:1' is no http URL; write https ="),
    (
        "lockd",
        before('[timings]\nleader_tll = "3s"'),
        "[timings] leader_tll: no such timing of lockd; did you mean 'leader_ttl'?",
    ),
    ("lockd", before('[dialect]\nlone_nod = "a"'), "[dialect] lone_nod: no such key; did you mean 'lone_node'?"),
    ("lockd", before('[known_failures]\n"TC-RN-07" = { reason = "x" }'), "did you mean 'TC-RM-07'?"),
]
BROKEN = [(spec, change, told) for change, told in OF_ANY_SPEC for spec in BOTH] + OF_ONE_SPEC


def describe(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("spec", "change", "told"), BROKEN, ids=lambda value: str(value)[:60])
def test_a_broken_descriptor_is_one_sentence_before_anything_starts(
    tmp_path: Path, spec: str, change: tuple[str, str], told: str
) -> None:
    text = BOTH[spec].replace(*change, 1)
    assert text != BOTH[spec]
    path = describe(tmp_path, text)
    for words in (["doctor", str(path)], ["run", spec, "--target", str(path), "--results", str(tmp_path / "results")]):
        code, out, err = said(*words)
        assert (code, out) == (2, "")
        (line,) = err.splitlines()
        assert line.startswith(f"holdfast: {path}: ")
        assert told in line


# Options of `run` beside a descriptor that is right; {file} is its path.
MIXES = [
    ("lockd --target {file}", "{file}: a target of admission, not of lockd"),
    ("admission lockd --target {file}", "--target {file} is of one spec; name that spec alone"),
    ("admision --target {file}", "admision: no such spec; Holdfast has suites for: admission, intents, lockd"),
    ("--target {file}x", "{file}x: no such descriptor; `holdfast init SPEC` writes one"),
    ("--target {file} --only AD-RAT-03", "AD-RAT-03: no requirement, group or check of admission; did you mean"),
    ("--target {file} --only AD-RATE-03#9", "AD-RATE-03#9: no such part; AD-RATE-03 has 1"),
    ("--target {file} --only ,", "--only: empty; give it a value, or leave it out"),
    ("--target {file} --profile al", "--profile al: no such profile"),
    ("--target {file} --time-scale 2", "--time-scale 2.0: must be above 0 and at most 1"),
    ("--target {file} --stranger 3", "--stranger: mine has no setting `stranger`"),
    ("--target {file} --stress -1 --repeat 0", "--repeat 0: must be at least 1"),
    ("--target {file} --budget 0s", "--budget 0s: nothing fits into that"),
    ("--target {file} --last-failed", "--last-failed: there was no run in"),
    ("--target {file} --catalogue 0.1", "admission: the catalogue has version 1.0, not 0.1"),
    ("--target {file} --results /proc/x", "--results /proc/x: can't be written to"),
    ("--target {file} --launcher spoon", "Invalid value for '--launcher'"),
    ("--target {file} --level", "Option '--level' requires an argument"),
    ("--target {file} --redis-url here", "--redis-url here: no URL of a Redis"),
]


@pytest.mark.parametrize(("words", "told"), MIXES)
def test_a_mix_of_options_that_makes_no_sense_is_one_sentence(
    tmp_path: Path, words: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = describe(tmp_path, ADMISSION)
    code, out, err = said("run", *words.format(file=path).split())
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith(f"holdfast: {told.format(file=path)}")


def refused(folder: Path, text: str) -> tuple[Ended, Ended]:
    """What `run` and `doctor` say of a descriptor whose mistake shows only on the wire."""
    path = describe(folder, text)
    spec = "lockd" if 'spec = "lockd"' in text else "admission"
    ran = holdfast(folder, "run", spec, "--target", str(path), "--results", "results")
    looked = holdfast(folder, "doctor", str(path))
    assert "Traceback" not in ran.text + looked.text
    return ran, looked


def one_sentence(ended: tuple[Ended, Ended], told: str) -> None:
    ran, looked = ended
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert told in line
    assert looked.code == 2
    assert [line for line in looked.out.splitlines() if "FAIL" in line and told in line], looked.out


@contextlib.contextmanager
def serving(status: int, certificates: Path | None = None) -> Iterator[int]:
    """A server that gives every request this status, over TLS if there are certificates; the value is its port."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_PUT = do_POST = _answer  # noqa: N815 - names that the library wants

        def log_message(self, *_words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificates:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a handshake that fails is what is tried
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_where_nothing_listens(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening, so that no other process does
        port = taken.getsockname()[1]
        told = f"nothing listens at http://127.0.0.1:{port}: start mine, or mend [[node]] urls in"
        one_sentence(refused(tmp_path, ADMISSION.replace(PORT, f"127.0.0.1:{port}")), told)


def test_a_wrong_administration_token_and_a_wrong_secret(tmp_path: Path) -> None:
    with serving(401) as port:
        text = ADMISSION.replace(PORT, f"127.0.0.1:{port}")
        told = "[credentials] admin_token: the target answers 401 to GET /admin/drain-mode/status; mend it in"
        one_sentence(refused(tmp_path, text), told)
        told = "[credentials] auth_secret: the target answers 401 to GET /instances/…/queue/status; mend it in"
        one_sentence(refused(tmp_path, text.replace('admin_token = "token"\n', "")), told)


def test_tokens_that_are_no_entries(tmp_path: Path) -> None:
    with serving(200) as port:
        text = ADMISSION.replace(PORT, f"127.0.0.1:{port}").replace(
            'auth_secret = "secret"', "identities = [{ usr = 1 }]"
        )
        one_sentence(refused(tmp_path, text), "[credentials] identities: entry 1 is none; write { user =")


def test_plain_http_behind_https_and_tls_behind_http(tmp_path: Path) -> None:
    ca = make_bundles(tmp_path / "bundles", ["a"]) / "ca.pem"
    with serving(200) as port:
        text = LOCKD.replace(PORT, f"127.0.0.1:{port}").replace("ca.pem", str(ca))
        told = f"[[node]] a urls https: https://127.0.0.1:{port} speaks no TLS; write http://"
        one_sentence(refused(tmp_path, text), told)
    with serving(200, make_certificates(tmp_path / "certificates")) as port:
        told = f"[[node]] a urls http: http://127.0.0.1:{port} speaks TLS; write https://"
        one_sentence(refused(tmp_path, ADMISSION.replace(PORT, f"127.0.0.1:{port}")), told)


@pytest.mark.parametrize(
    ("content", "told"), [(None, "can't be read (No such file or directory)"), ("no certificate", "is no PEM file")]
)
def test_a_file_of_certificates_that_is_none(tmp_path: Path, content: str | None, told: str) -> None:
    ca = tmp_path / "ca.pem"
    if content:
        ca.write_text(content)
    one_sentence(refused(tmp_path, LOCKD.replace('"ca.pem"', f'"{ca}"')), f"[credentials] ca: {ca} {told}; mend it in")


def test_a_ca_that_did_not_sign_the_server(tmp_path: Path) -> None:
    ca = make_bundles(tmp_path / "bundles", ["a"]) / "ca.pem"
    with serving(200, make_certificates(tmp_path / "certificates")) as port:
        text = LOCKD.replace(PORT, f"127.0.0.1:{port}").replace("ca.pem", str(ca))
        told = f"[credentials] ca: its CA did not sign the certificate of https://127.0.0.1:{port}; mend it in"
        one_sentence(refused(tmp_path, text), told)


@pytest.mark.parametrize(
    ("start", "told"),
    [("no-such-program", "there is no program no-such-program on PATH: install it"), ("false", "ended with status 1")],
)
def test_a_start_command_that_starts_nothing(tmp_path: Path, start: str, told: str) -> None:
    text = ADMISSION.replace('name = "a"', f'name = "a"\nstart = "{start}"').replace(PORT, "127.0.0.1:{port}")
    ran, looked = refused(tmp_path, text)
    assert (ran.code, looked.code) == (2, 2)
    assert told in " ".join(ran.err.split()), ran.err
    assert told in " ".join(looked.out.split()), looked.out


def test_what_does_not_work_beside_a_target_that_does_is_exit_code_1_of_the_doctor(tmp_path: Path) -> None:
    with serving(200) as port:
        text = ADMISSION.replace(PORT, f"127.0.0.1:{port}").replace(SECTION, f'[observe]\nmetrics = "/m"\n{SECTION}')
        looked = holdfast(tmp_path, "doctor", str(describe(tmp_path, text)))
    assert looked.code == 1, looked.text
    assert f"GET http://127.0.0.1:{port}/m: no Prometheus metrics in the answer" in looked.out


def test_a_doctor_that_could_try_nothing_is_not_green(tmp_path: Path) -> None:
    text = ADMISSION.replace('urls = { http = "http://127.0.0.1:1" }\n', "").partition(SECTION)[0]
    looked = holdfast(tmp_path, "doctor", str(describe(tmp_path, text)))
    assert (looked.code, looked.err) == (2, "")
    assert "there is nothing to run against" in looked.out
