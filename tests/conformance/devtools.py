"""A real browser, driven over its DevTools protocol."""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import urllib.request

from websockets.sync.client import connect

PATIENCE = 240
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


@contextlib.contextmanager
def opened(chromium, kind=Page, more=()):
    """A headless browser with an empty page; `more` are further flags."""
    # Processes of the browser may write there for a moment after it was killed.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
        flags += ["--remote-debugging-port=0", "--user-data-dir=" + profile, *more, "about:blank"]
        browser = subprocess.Popen([chromium, *flags], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True)
        try:
            port = next(m.group(1) for line in browser.stderr if (m := re.search(r"ws://127\.0\.0\.1:(\d+)/", line)))
            with urllib.request.urlopen("http://127.0.0.1:%s/json/list" % port) as answer:
                target = next(t for t in json.load(answer) if t["type"] == "page")
            yield kind(target["webSocketDebuggerUrl"])
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
