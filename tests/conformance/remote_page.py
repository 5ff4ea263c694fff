"""The viewer over the listener for devices: pairs a browser by its link, and uses it as a phone does.

Usage: remote_page.py CHROMIUM LOCAL TOKEN LAN
LOCAL and LAN are addresses of the daemon; one approval is pending. Prints one JSON object of what was seen.
"""

import http.client
import json
import ssl
import sys

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as dial

from devtools import LEFT_OPEN, opened
from viewer_page import Viewer, connect

# A browser warns about the certificate, and its user goes on.
TLS = ssl._create_unverified_context()


def request(lan, method, path, body=None, **headers):
    connection = http.client.HTTPSConnection(lan, context=TLS, timeout=60)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def pair(lan, code, origin=None, name="a phone"):
    return request(lan, "POST", "/viewer/pair", json.dumps({"code": code, "name": name}), origin=origin or "https://" + lan, **{"content-type": "application/json"})


def offer(daemon, *rights):
    return daemon.call("pair.begin", rights=list(rights))["page"].split("#pair=")[1]


class Page:
    """A page's connection, without a page."""

    def __init__(self, lan, secret, path="/viewer/rpc", origin=None):
        protocols = ["cairn.v1", "bearer." + secret]
        self.socket = LEFT_OPEN.enter_context(dial("wss://%s%s" % (lan, path), ssl=TLS, subprotocols=protocols, origin=origin or "https://" + lan, open_timeout=60))
        self.next = 0
        self.call("initialize", protocolVersions=["1"], client={"name": "phone", "version": "1"})

    def call(self, method, **params):
        self.next += 1
        self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv(timeout=60))
            if message.get("id") == self.next:
                return message["error"]["data"]["reason"] if "error" in message else message["result"]


def status(*given, **more):
    try:
        Page(*given, **more).socket.close()
        return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def raw(daemon, lan, seen):
    """The rules, as a client that is no browser meets them."""
    seen["public"] = {path: request(lan, "GET", path)[0] for path in ["/viewer", "/viewer/app.js", "/healthz"]}
    seen["refused"] = {path: request(lan, "GET", path)[0] for path in ["/metrics", "/events", "/rpc", "/mcp", "/sessions/ses_00000000000000000000000000000000/events", "/viewer/session"]}
    seen["post"] = request(lan, "POST", "/rpc", "{}")[0]
    code = offer(daemon, "observe")
    seen["elsewhere"] = [pair(lan, code, origin)[0] for origin in ["https://evil.example", "http://" + lan, "null"]]
    seen["wrong"] = pair(lan, "0" * 32)
    seen["malformed"] = request(lan, "POST", "/viewer/pair", "[]", origin="https://" + lan)[0]
    seen["large"] = request(lan, "POST", "/viewer/pair", "x" * 5000, origin="https://" + lan)[0]
    paired, body = pair(lan, code)
    secret = json.loads(body)["secret"]
    seen["paired"] = [paired, json.loads(body)["rights"]]
    seen["again"] = pair(lan, code)
    page = Page(lan, secret)
    seen["observer"] = {method: page.call(method, **params) for method, params in [
        ("approval.resolve", {"approvalId": "apr_00000000000000000000000000000000", "decision": "once"}), ("session.create", {}), ("pair.begin", {"rights": ["observe"]}), ("daemon.stop", {})]}
    seen["reads"] = isinstance(page.call("session.list")["data"], list)
    seen["doors"] = [status(lan, secret, path="/rpc"), status(lan, "0" * 64), status(lan, secret, origin="https://evil.example")]
    # The token of the daemon has no effect here, nor has the public key of the daemon as a secret.
    seen["keys"] = [status(lan, daemon.token), status(lan, daemon.call("pair.begin", rights=["observe"])["key"])]
    seen["listed"] = [[one["name"], one["browser"], one["rights"], one["connections"]] for one in daemon.call("client.list")["data"]]
    for device in daemon.call("client.list")["data"]:
        daemon.call("client.revoke", id=device["id"])
    try:
        page.call("session.list")
        seen["revoked"] = "still connected"
    except ConnectionClosed:
        seen["revoked"] = status(lan, secret)


def phone(chromium, daemon, lan, seen):
    """A phone: pairs by the link, answers an approval, and is still paired when the page is opened again."""
    with opened(chromium, Viewer, ["--ignore-certificate-errors"]) as page:
        page.call("Page.enable")
        page.resize(390, 844)
        page.call("Page.navigate", url="https://%s/viewer#pair=%s" % (lan, offer(daemon, "observe", "prompt", "approve")))
        page.until("document.querySelector('.waiting-call')")
        seen["address"] = page.ask("location.pathname + location.hash")
        page.click(".waiting-call")
        page.ready_to_answer()
        seen["fits"] = page.ask("document.documentElement.scrollWidth <= innerWidth")
        page.click("button[data-decision=once]")
        seen["toast"] = page.until("document.querySelector('.toast')?.textContent")
        page.call("Page.navigate", url="about:blank")
        page.call("Page.navigate", url="https://%s/viewer" % lan)
        seen["reopened"] = page.until("document.querySelector('main .page h1')?.textContent === 'Home' && document.querySelector('.entry')?.innerText")
        # An old link takes nothing away from a paired browser, and says what to do to another.
        page.call("Page.navigate", url="https://%s/viewer#pair=%s" % (lan, "0" * 32))
        seen["remark"] = page.until("document.querySelector('.toast')?.textContent")
        page.ask("localStorage.clear(); 0")
        page.call("Page.navigate", url="about:blank")
        page.call("Page.navigate", url="https://%s/viewer#pair=%s" % (lan, "0" * 32))
        seen["expired"] = page.until("document.querySelector('.gate')?.innerText")
        seen["manifest"] = page.ask("fetch(document.querySelector('link[rel=manifest]').href).then((answer) => answer.json()).then((one) => one.icons.length)")


def main(chromium, local, token, lan):
    daemon = connect(local, token)
    daemon.token = token
    seen = {}
    raw(daemon, lan, seen)
    phone(chromium, daemon, lan, seen)
    seen["clients"] = [[one["name"], one["browser"]] for one in daemon.call("client.list")["data"]]
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
