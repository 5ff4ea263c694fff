"""Starts an explore in the viewer, follows it and reads its report, in a real browser over its DevTools protocol.

Usage: explore_page.py CHROMIUM ADDRESS TOKEN ROOT
ROOT is a declared folder with a git repository and hostile names. Prints one JSON object of what was seen.
"""

import json
import sys

from devtools import opened
from viewer_page import UNNAMED, Viewer, connect

FITS = "document.documentElement.scrollWidth <= innerWidth && document.querySelector('.report').scrollWidth <= document.querySelector('.report').clientWidth"


class Form(Viewer):
    def fill(self, **fields):
        """Fills the fields, empties the others and submits the form."""
        self.until("document.querySelector('#explore-target')")
        for name in ["target", "since", "branch", "goal"]:
            self.ask("document.querySelector('#explore-%s').value = %s; 0" % (name, json.dumps(fields.get(name, ""))))
        self.ask("document.querySelector('form').requestSubmit(); 0")

    def problem(self, field):
        return self.until("document.querySelector('#explore-%s')?.ariaInvalid === 'true' && document.querySelector('#explore-%s-error').textContent" % (field, field))


def main(chromium, address, token, root):
    daemon = connect(address, token)
    seen = {}
    with opened(chromium, Form) as page:
        page.open(daemon, address)
        look(page, root, seen)
    print(json.dumps(seen))


def look(page, root, seen):
    page.press("4")
    page.until("document.activeElement?.id === 'explore-target' && document.activeElement.value")
    problems(page, root, seen)

    # A clone from this machine needs an approval: meanwhile the explore is cancelled.
    page.fill(target="https://127.0.0.1:9/owner/name.git")
    page.until("document.querySelector('.report')?.innerText.includes('approval is pending')")
    page.click(".bar button", "Cancel")
    seen["stopped"] = page.until("(document.querySelector('.report')?.innerText.match(/The explore has been stopped.*/) ?? [])[0]")

    page.press("4")
    page.fill(target=root, since="HEAD", goal="where does it stop")
    # The operations are counted while the explore runs.
    page.until("document.querySelector('.report section') || document.querySelector('progress')?.value > 0")
    page.until("document.querySelector('.report section')")
    report(page, seen)

    # It is found in the list of sessions again.
    page.press("5")
    page.choose("repo")
    page.press("Enter")
    seen["reopened"] = page.until("document.querySelector('.report section') && document.querySelector('.report h2').textContent")


def problems(page, root, seen):
    page.fill()
    seen["empty"] = page.problem("target")
    page.fill(target="src")
    seen["relative"] = page.problem("target")
    page.fill(target=root, branch="main")
    seen["branch"] = page.problem("branch")
    page.fill(target=root, since="a..b")
    seen["range"] = page.problem("since")
    page.fill(target="/usr/share")
    seen["undeclared"] = page.problem("target")
    # An explore that fails because of a field returns to the form.
    page.fill(target=root, since="nosuch")
    seen["revision"] = page.problem("since")
    seen["reader"] = page.ask("import('/viewer/explore.js').then((one) => one.Explore.isAllowed(['session.list']))")
    seen["allowed"] = page.ask("import('/viewer/explore.js').then((one) => one.Explore.isAllowed(['orchestrate.explore.start']))")
    seen["unnamed"] = page.ask(UNNAMED)


def report(page, seen):
    seen["sections"] = page.ask("[...document.querySelectorAll('.report h3')].map((one) => one.textContent)")
    seen["changes"] = page.ask("document.querySelector('.report section').innerText")
    seen["boxes"] = page.ask("document.querySelectorAll('.graph .box').length")
    seen["edges"] = page.ask("document.querySelectorAll('.graph .edge').length")
    seen["page"] = page.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; }); document.querySelector('.report').textContent")
    seen["images"] = page.ask("document.querySelectorAll('img, script:not([src]), iframe, .report a[href]').length")
    seen["harmed"] = page.ask("window.harmed ?? null")
    seen["hidden"] = page.ask("(document.querySelector('.report').textContent.match(/[\\u202e\\u0007\\u001b]/g) ?? []).length")
    seen["unnamed"] += page.ask(UNNAMED)
    # A box of the diagram opens its component by key.
    page.ask("document.querySelector('.graph .box').focus(); 0")
    page.press("Enter")
    seen["focused"] = page.ask("document.activeElement.className")
    page.resize(1280, 900)
    seen["wide"] = page.ask(FITS)
    page.resize(390, 844)
    seen["narrow"] = page.ask(FITS)


if __name__ == "__main__":
    main(*sys.argv[1:])
