"""`index.html` over several specs: what each came to, what all cost, the way to each report. One file, no script."""

from markupsafe import Markup

from holdfast.reports.html import LOOKS, asset, environment, policy
from holdfast.reports.summary import outcome_line
from holdfast.reports.text import Json
from holdfast.reports.together import verdicts_of

INDEX = "index.html"


def render(document: Json) -> str:
    style = asset("report.css")
    return (
        environment()
        .get_template("index.html.j2")
        .render(
            doc=document,
            style=Markup(style),  # noqa: S704 - this package's own file
            policy=policy(style),
            verdicts={key: list(map(_shown, verdicts_of(results))) for key, results in document["specs"].items()},
            outcomes={key: outcome_line(results) for key, results in document["specs"].items()},
        )
        .lstrip()
    )


def _shown(counted: tuple[str, int]) -> tuple[str, str, int]:
    """The name, the verdict with whose colours it is shown, and the number."""
    name, number = counted
    return name, str(LOOKS.get(name, "fail" if name == "false alarm" else name)), number
