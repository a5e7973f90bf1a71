"""placeholder"""

from holdfast.reference.admission.parts import Parts


def apply(name: str, parts: Parts) -> None: ...
