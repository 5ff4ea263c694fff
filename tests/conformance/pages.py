"""Looks at each page of the viewer with axe-core: light, dark, and as wide as a phone.

Usage: pages.py CHROMIUM ADDRESS TOKEN AXE PAGES
AXE is the source of axe-core, PAGES a JSON object of addresses by name. With CAIRN_SCREENSHOTS=FOLDER each is also stored as a
picture, and on a screen of 4K. Prints one JSON object of what was found.
"""

import json
import os
import sys

from devtools import opened
from viewer_page import SMALL, UNNAMED, Viewer, connect

SCREENS = {"light": (1280, 860, False, 1), "dark": (1280, 860, True, 1), "phone": (390, 844, False, 2), "phone-dark": (390, 844, True, 2)}
RUN = """axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')))"""
WIDE = "document.documentElement.scrollWidth > innerWidth || [...document.querySelectorAll('main, .page, .scroller, .report')].some((one) => one.scrollWidth > one.clientWidth)"


def main(chromium, address, token, axe, pages):
    daemon = connect(address, token)
    pictures = os.environ.get("CAIRN_SCREENSHOTS")
    screens = {**SCREENS, **({"4k": (3840, 2160, False, 1)} if pictures else {})}
    with open(axe) as file:
        source = file.read()
    found, seen = [], 0
    with opened(chromium, Viewer) as page:
        page.open(daemon, address)
        page.ask(source + "; 0")
        for screen, (width, height, dark, scale) in screens.items():
            page.resize(width, height, dark, scale)
            for name, (route, selector) in json.loads(pages).items():
                page.go(route)
                page.until("document.querySelector(%s)" % json.dumps(selector))
                if pictures:
                    page.frames(20)
                    page.screenshot(os.path.join(pictures, "%s-%s.png" % (name, screen)))
                page.ask("for (const one of document.querySelectorAll('main details')) one.open = true; 0")
                page.frames(3)
                seen += 1
                problems = page.ask(RUN) + ["unnamed: " + one for one in page.ask(UNNAMED)]
                problems += ["wider than its window"] if page.ask(WIDE) else []
                problems += ["small: " + one for one in page.ask(SMALL)] if width < 500 else []
                found += ["%s, %s: %s" % (name, screen, one) for one in problems]
    print(json.dumps({"found": found, "seen": seen}))


if __name__ == "__main__":
    main(*sys.argv[1:])
