"""What every suite is built with, whatever its spec says (docs/decisions/0012-shared-parts.md)."""
