"""Drives a page that uses the TypeScript client in a real browser.

Usage: page.py CHROMIUM FOLDER
FOLDER holds page.html and the client in cairn-client/. Prints the page's origin; reads one line of JSON with the
daemon's `address` and `token`, and a `root` that is indexed; prints one JSON object of what was seen.
"""

import functools
import http.server
import json
import socket
import sys
import threading
import urllib.parse

from devtools import opened


class Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {".js": "text/javascript", ".html": "text/html"}

    def log_message(self, *_):
        pass


class Cable:
    """Passes connections on to an address, until they are cut."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.to = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.ends = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near = self.listener.accept()[0]
            far = socket.create_connection(self.to)
            self.ends += [near, far]
            for pair in (near, far), (far, near):
                threading.Thread(target=self.pump, args=pair, daemon=True).start()

    @staticmethod
    def pump(source, sink):
        try:
            while some := source.recv(65536):
                sink.sendall(some)
        except OSError:
            pass
        for end in source, sink:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        ends, self.ends = self.ends, []
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


# What the page does, as functions of its own.
SCRIPT = """
const { connect } = await import('./cairn-client/index.js');
const turn = async (target, root) => {
  const cairn = await connect(target, { approvals: true });
  const session = await cairn.sessionCreate({ root });
  await cairn.runStart({ sessionId: session.sessionId, turnId: 't', input: 'write it' });
  window.seen = [];
  window.follow = cairn.follow(session.sessionId, { toEnd: true });
  window.over = (async () => { for await (const record of follow) seen.push(record); })();
  window.cairn = cairn;
};
const allow = async (target) => {
  const { approval } = seen.find((record) => record.evt?.type === 'approval_required').evt;
  const cairn = await connect(target, { approvals: true });
  await cairn.approvalResolve({ approvalId: approval.approvalId, decision: 'once' });
  await over;
  await cairn.close();
  const outcome = seen.at(-1).evt.result.status;
  return { outcome, seqs: seen.map((record) => record.seq), reconnects: follow.reconnects };
};
const failure = async (target) => {
  try { await connect(target); return 'none'; } catch (error) { return error.constructor.name; }
};
const post = async (address, token) => {
  const call = { jsonrpc: '2.0', id: 1, method: 'daemon.status' };
  const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json', 'cairn-protocol': '1' };
  try {
    const answer = await fetch('http://' + address + '/rpc', { method: 'POST', headers, body: JSON.stringify(call) });
    return (await answer.json()).result.pid > 0;
  } catch (error) { return error.constructor.name; }
};
Object.assign(window, { turn, allow, failure, post });
"""


def load(page, url):
    page.call("Page.navigate", url=url)
    page.until("document.readyState === 'complete' && document.getElementById('out')")
    page.ask("(async () => {%s})()" % SCRIPT)


def main(chromium, folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port
    print("http://127.0.0.1:%d" % port, flush=True)
    told = json.loads(sys.stdin.readline())
    cable, said = Cable(told["address"]), {}
    direct = {"address": told["address"], "token": told["token"]}
    target = {**direct, "address": cable.address}
    with opened(chromium) as page:
        page.call("Page.enable")
        words = ",".join(urllib.parse.quote(told[key], safe="") for key in ("address", "token", "root", "query"))
        load(page, "http://127.0.0.1:%d/page.html#%s" % (port, words))
        said["example"] = page.until("/^done$/m.test(document.getElementById('out').textContent) && document.getElementById('out').textContent")
        # A turn that waits for leave while its connection is cut.
        page.ask("turn(%s, %s)" % (json.dumps(target), json.dumps(told["root"])))
        page.until("seen.some((record) => record.evt?.type === 'approval_required')")
        cable.cut()
        page.ask("cairn.closed")
        said["turn"] = page.ask("allow(%s)" % json.dumps(target))
        said["post"] = page.ask("post(%s, %s)" % (json.dumps(told["address"]), json.dumps(told["token"])))
        said["token"] = page.ask("failure(%s)" % json.dumps({**direct, "token": "wrong"}))
        said["unreachable"] = page.ask("failure(%s)" % json.dumps({**direct, "address": "127.0.0.1:1"}))
        # The same page under another name is another origin, which nobody allowed.
        load(page, "http://localhost:%d/page.html" % port)
        said["stranger"] = page.ask("failure(%s)" % json.dumps(direct))
        said["strangerPost"] = page.ask("post(%s, %s)" % (json.dumps(told["address"]), json.dumps(told["token"])))
    print(json.dumps(said))


if __name__ == "__main__":
    main(*sys.argv[1:])
