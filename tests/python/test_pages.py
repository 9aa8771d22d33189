"""Every ```python block of the pages runs, on a Redis server."""
import asyncio
import os
import re
import unittest

from support import Case, HERE

ROOT = os.path.join(HERE, "..", "..")
PAGES = ("README.md", "docs/python.md")


class Pages(Case):
    def test_blocks(self):
        count, stored = 0, []
        for page in PAGES:
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                text = file.read()
            for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
                with self.subTest(page=page, block=block):
                    names = {"store": stored.append}
                    exec(compile(block.replace("redis://cache1", self.url), page, "exec"), names)
                    if "work" in names:
                        asyncio.run(names["work"](self.one))
                    count += 1
        self.assertGreaterEqual(count, 3)
        self.assertTrue(stored and all(stored))


if __name__ == "__main__":
    unittest.main()
