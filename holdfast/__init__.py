"""Holdfast proves that session, lease and leadership services keep their promises."""

from pathlib import Path

from holdfast.rooms import further_places

__version__ = "0.1.0"
__path__ += further_places(Path(__file__).parent)
