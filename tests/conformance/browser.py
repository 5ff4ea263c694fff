"""Drives the viewer in a real browser, over its DevTools protocol, as a person at a keyboard would.

Usage: browser.py CHROMIUM ADDRESS TOKEN ROOT LARGE
ROOT is a folder whose session gets a turn that asks for leave; LARGE is the title of a session with very many records.
Prints one JSON object of what was seen, and how many milliseconds the large one took to show.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

from websockets.sync.client import connect

PATIENCE = 60
# Sockets, until the end of this program.
LEFT_OPEN = contextlib.ExitStack()


class Peer:
    """JSON-RPC in one direction, with what else comes kept aside."""

    says = {"jsonrpc": "2.0"}

    def __init__(self, url, **options):
        self.socket = LEFT_OPEN.enter_context(connect(url, max_size=None, open_timeout=PATIENCE, **options))
        self.next = 0
        self.aside = []

    def call(self, method, **params):
        self.next += 1
        self.socket.send(json.dumps({**self.says, "id": self.next, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=PATIENCE))
            if message.get("id") == self.next:
                if "error" in message:
                    raise RuntimeError("%s: %s" % (method, message["error"]))
                return message["result"]
            self.aside.append(message)


class Page(Peer):
    # A browser takes no word that it does not know.
    says = {}

    def ask(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError("%s: %s" % (expression, answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, expression):
        """Waits in the page until the expression is something, and answers with it."""
        wait = "new Promise((done, late) => { setTimeout(() => late(new Error(document.body.innerText)), %d);" % (PATIENCE * 1000)
        wait += "const look = () => { const it = (%s); it ? done(it) : setTimeout(look, 10); }; look(); })" % expression
        return self.ask(wait)

    def press(self, key):
        code = {"Enter": 13, "Escape": 27}.get(key, ord(key[0].upper()))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def choose(self, title):
        """Goes down the list to the row with that title."""
        row = "[...document.querySelectorAll('.row.session')].find((row) => row.innerText.includes(%s))" % json.dumps(title)
        at = int(self.until("%s?.dataset.at" % row))
        self.press("g")
        for _ in range(at):
            self.press("j")
        self.until("%s?.classList.contains('chosen')" % row)


def main(chromium, address, token, root, large):
    daemon = Peer("ws://%s/rpc" % address, additional_headers={"Authorization": "Bearer " + token})
    daemon.call("initialize", protocolVersions=["1"], client={"name": "browser", "version": "1"})
    session = daemon.call("session.create", title="watched", root=root)["sessionId"]
    link = "http://%s%s" % (address, daemon.call("viewer.link")["path"])
    said = {}
    # Processes of the browser may write there for a moment after it was killed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--remote-debugging-port=0", "--user-data-dir=" + profile, "about:blank"]
        browser = subprocess.Popen([chromium, *flags], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True)
        try:
            port = next(m.group(1) for line in browser.stderr if (m := re.search(r"ws://127\.0\.0\.1:(\d+)/", line)))
            with urllib.request.urlopen("http://127.0.0.1:%s/json/list" % port) as answer:
                target = next(t for t in json.load(answer) if t["type"] == "page")
            page = Page(target["webSocketDebuggerUrl"])
            look(page, daemon, session, link, large, said)
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
    print(json.dumps(said))


def look(page, daemon, session, link, large, said):
    page.call("Page.enable")
    page.call("Page.navigate", url=link)
    page.until("document.readyState === 'complete' && document.querySelector('.row.session')")
    said["address"] = page.ask("location.pathname + location.hash")
    said["state"] = page.until("document.getElementById('state').textContent.startsWith('Cairn ') && document.getElementById('state').textContent")

    # A session is opened, and what happens in it comes by itself.
    page.choose("watched")
    page.press("Enter")
    page.until("document.querySelector('.bar strong')?.textContent === 'watched'")
    records = "Number(document.querySelector('.bar')?.innerText.match(/([\\d,]+) records/)?.[1].replace(/,/g, ''))"
    page.until("%s >= 0" % records)
    said["before"] = page.ask(records)
    daemon.call("tool.call", sessionId=session, name="fs_list_dir", arguments={"path": "."})
    page.until("%s > %d" % (records, said["before"]))
    said["after"] = page.until("[...document.querySelectorAll('.row.trace')].some((row) => row.innerText.includes('fs_list')) && %s" % records)

    # A turn asks for leave; it is given by a key.
    daemon.call("orchestrate.subscribe", sessionId=session, after="live")
    daemon.call("orchestrate.run.start", sessionId=session, turnId="t", input="write it")
    page.until("document.getElementById('waiting').textContent === '1'")
    page.press("2")
    said["asked"] = page.until("document.querySelector('.detail h3')?.textContent")
    # A key that comes before the question can have been read is not taken.
    page.ask("new Promise((done) => setTimeout(done, 500))")
    page.press("y")
    page.until("document.querySelector('.detail p.faint')?.textContent === 'nothing waits for leave'")
    said["outcome"] = ended(daemon)

    # Very many records.
    page.press("1")
    page.choose(large)
    page.ask("document.addEventListener('keydown', () => { window.pressed = performance.now(); }, { once: true, capture: true }); 0")
    painted = "new Promise((done) => { const look = () => { const row = document.querySelector('.row.trace .right');"
    painted += "row ? requestAnimationFrame(() => done(performance.now() - window.pressed)) : requestAnimationFrame(look); }; look(); })"
    page.press("Enter")
    said["firstPaintMs"] = round(page.ask(painted))
    said["large"] = page.until("%s > 1000 && %s" % (records, records))
    page.press("G")
    said["last"] = page.until("[...document.querySelectorAll('.row.trace .right')].map((cell) => cell.textContent).find((text) => text === '%d')" % said["large"])


def ended(daemon):
    while True:
        waiting, daemon.aside = daemon.aside, []
        for message in waiting or [json.loads(daemon.socket.recv(timeout=PATIENCE))]:
            evt = message.get("params", {}).get("evt", {})
            if evt.get("type") == "run_completed":
                return evt["result"]["status"]


if __name__ == "__main__":
    main(*sys.argv[1:])
