"""Whether a target has promised the whole contract of its spec (`proto/<key>/openapi.yaml`)."""

from holdfast.check.finding import NotApplicable


def must_be_declared(declared: object) -> None:
    """Raises NotApplicable unless the descriptor declares the whole contract, which demands more than the spec."""
    if not declared:
        raise NotApplicable("the descriptor does not declare the whole OpenAPI contract")
