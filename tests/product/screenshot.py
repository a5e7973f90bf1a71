"""python -m tests.product.screenshot RESULTS_DIR docs/report.png: the README's picture of a report."""

import asyncio
import sys
from pathlib import Path

from tests.product.browser import page

WIDTH, HEIGHT = 1280, 860


async def take(url: str) -> bytes:
    async with page() as tab:
        await tab.open(url, width=WIDTH, height=HEIGHT)
        return await tab.screenshot()


def main() -> None:
    results, picture = map(Path, sys.argv[1:])
    picture.write_bytes(asyncio.run(take((results / "report.html").absolute().as_uri())))


if __name__ == "__main__":
    main()
