"""Drives the viewer in a real browser, over its DevTools protocol, as a person at a keyboard would.

Usage: browser.py CHROMIUM ADDRESS TOKEN ROOT LARGE
ROOT is a folder whose session gets a turn that asks for leave; LARGE is the title of a session with very many records.
Prints one JSON object of what was seen, and how many milliseconds the large one took to show.
"""

import json
import sys

from devtools import PATIENCE, Page, Peer, opened


class Viewer(Page):
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
    with opened(chromium, Viewer) as page:
        look(page, daemon, session, link, large, said)
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
    page.until("document.querySelector('.detail p.faint')?.textContent === 'no pending approvals'")
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
