"""python -m tests.product.screenshot RESULTS_DIR docs/report.png: the README's picture of a report."""

import asyncio
import sys
from pathlib import Path

from tests.product.browser import page

WIDTH, HEIGHT = 1280, 860


async def take(results: Path, picture: Path) -> None:
    async with page() as tab:
        await tab.open((results / "report.html").absolute().as_uri(), width=WIDTH, height=HEIGHT)
        await tab.screenshot(picture)


if __name__ == "__main__":
    asyncio.run(take(Path(sys.argv[1]), Path(sys.argv[2])))
