"""The viewer in a real browser, as the tests of it drive it."""

import base64
import json

from devtools import Page, Peer

# Controls and links that have no name for a screen reader.
UNNAMED = """[...document.querySelectorAll('button, input, select, textarea, a, [role=link], [role=group], [tabindex="0"], progress')].filter((node) =>
  node.checkVisibility() && !node.closest('dialog') && !(node.getAttribute('aria-label') || node.labels?.length || node.textContent.trim()))
  .map((node) => node.outerHTML.slice(0, 100))"""

# What is lower than a thumb needs; links in running text may be.
SMALL = """[...document.querySelectorAll('button, a, select, input, summary, textarea')].filter((node) => node.checkVisibility() && !node.classList.contains('skip')
  && !node.closest('p, dd, .markdown, .hit-head, .entry-line') && node.getBoundingClientRect().height > 0 && node.getBoundingClientRect().height < 43.5)
  .map((node) => node.outerHTML.slice(0, 120))"""


def connect(address, token, name="browser"):
    daemon = Peer("ws://%s/rpc" % address, additional_headers={"Authorization": "Bearer " + token})
    daemon.call("initialize", protocolVersions=["1"], client={"name": name, "version": "1"})
    return daemon


class Viewer(Page):
    def open(self, daemon, address, route=""):
        """Opens the page by a link of the daemon."""
        self.call("Page.enable")
        self.call("Runtime.enable")
        # As in a window that has the focus: without it, no element is notified of its own.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.call("Page.navigate", url="http://%s%s%s" % (address, daemon.call("viewer.link")["path"], route))
        self.until("document.querySelector('main .page')")

    def until(self, expression):
        """As on any page; one that is being replaced by another is asked again."""
        for _ in range(5):
            try:
                return super().until(expression)
            except RuntimeError as error:
                if "navigated or closed" not in str(error) and "Cannot find context" not in str(error):
                    raise
        return super().until(expression)

    def go(self, route):
        self.ask("location.hash = %s; 0" % json.dumps("#" + route))
        self.frames(2)

    def frames(self, count=1):
        self.ask("new Promise((done) => { let left = %d; const next = () => (left-- > 0 ? requestAnimationFrame(next) : done(0)); next(); })" % count)

    def resize(self, width, height, dark=False, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 500)
        self.call("Emulation.setTouchEmulationEnabled", enabled=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.frames(2)

    def text(self, selector):
        return self.ask("document.querySelector(%s)?.innerText ?? null" % json.dumps(selector))

    def click(self, selector, text=""):
        self.until("[...document.querySelectorAll(%s)].some((one) => one.checkVisibility() && !one.disabled && one.textContent.includes(%s))" % (json.dumps(selector), json.dumps(text)))
        self.ask("[...document.querySelectorAll(%s)].find((one) => one.checkVisibility() && !one.disabled && one.textContent.includes(%s)).click(); 0" % (json.dumps(selector), json.dumps(text)))

    def choose(self, title):
        """Goes down a list by key to the entry with that title."""
        self.until("[...document.querySelectorAll('main [data-row]')].some((row) => row.innerText.includes(%s))" % json.dumps(title))
        self.press("g")
        at = "document.activeElement?.dataset?.row && document.activeElement.innerText.includes(%s)" % json.dumps(title)
        for _ in range(self.ask("document.querySelectorAll('main [data-row]').length")):
            if self.ask(at):
                return
            self.press("j")
        raise AssertionError("no entry has the title " + title)

    def ready_to_answer(self):
        """Gives the open approval the focus, and waits until it takes an answer: one that comes before it can have been read is not."""
        self.until("document.querySelector('.approval button[data-decision]')")
        self.ask("document.querySelector('.approval').focus(); 0")
        self.pause()

    def pause(self):
        """Waits longer than the time in which no key answers."""
        self.ask("new Promise((done) => setTimeout(done, 450))")

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
