"""Whether a target has promised the whole contract of its spec (`proto/<key>/openapi.yaml` or `asyncapi.yaml`)."""

from holdfast.check.finding import NotApplicable


def must_be_declared(declared: object, kind: str = "OpenAPI") -> None:
    """Raises NotApplicable unless the descriptor declares the whole contract, which demands more than the spec."""
    if not declared:
        raise NotApplicable(f"the descriptor does not declare the whole {kind} contract")
