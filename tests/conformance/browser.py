"""Drives the viewer in a real browser, over its DevTools protocol, as a person at a keyboard would.

Usage: browser.py CHROMIUM ADDRESS TOKEN ROOT LARGE
ROOT is a folder whose session gets a turn that needs an approval; LARGE is the title of a session with very many records.
Prints one JSON object of what was seen, and how many milliseconds the large one took to show.
"""

import json
import sys

from devtools import PATIENCE, opened
from viewer_page import Viewer, connect


def main(chromium, address, token, root, large):
    daemon = connect(address, token)
    session = daemon.call("session.create", title="watched", root=root)["sessionId"]
    seen = {}
    with opened(chromium, Viewer) as page:
        look(page, daemon, address, session, seen)
        measure(page, large, seen)
    print(json.dumps(seen))


def look(page, daemon, address, session, seen):
    page.open(daemon, address)
    seen["address"] = page.ask("location.pathname + location.hash")
    seen["state"] = page.until("document.getElementById('state').textContent.startsWith('Cairn ') && document.getElementById('state').textContent")

    # A session is opened, and what happens in it comes by itself.
    page.press("5")
    page.choose("watched")
    page.press("Enter")
    page.until("document.querySelector('h1')?.textContent === 'watched' && document.querySelector('.composer')")
    seen["before"] = page.ask("document.querySelectorAll('.item.call').length")
    daemon.call("tool.call", sessionId=session, name="fs_list_dir", arguments={"path": "."})
    seen["call"] = page.until("document.querySelector('.item.call [data-state=done]')?.innerText")

    # A turn is started from the page; it needs an approval, which is given by a key.
    daemon.call("orchestrate.subscribe", sessionId=session, after="live")
    page.press("i")
    page.until("document.activeElement?.tagName === 'TEXTAREA'")
    page.call("Input.insertText", text="write it")
    page.click(".composer button.send")
    page.until("document.querySelector('.badge').textContent === '1'")
    seen["inline"] = page.until("document.querySelector('.item.approval .approval-title')?.textContent")
    page.press("Escape")
    page.press("Escape")
    page.press("2")
    seen["asked"] = page.until("document.querySelector('.inbox .approval')?.innerText.includes('watched') && document.querySelector('.inbox .approval').innerText")
    page.ready_to_answer()
    page.press("y")
    page.until("document.querySelector('.empty-title')?.textContent === 'Nothing waits for you'")
    seen["outcome"] = outcome(daemon)
    page.go("/session/" + session)
    page.until("document.querySelector('.item.end')")
    seen["conversation"] = page.text(".conversation")

    # The call is one line; its output is a click away.
    page.click(".item.call summary", "Write")
    seen["opened"] = page.until("document.querySelector('details.call[open] .call-body')?.innerText")


def measure(page, large, seen):
    """Opens a session of very many records, scrolls it, and goes to its last record."""
    page.go("/sessions")
    page.choose(large)
    page.ask("document.addEventListener('keydown', () => { window.pressed = performance.now(); }, { once: true, capture: true }); 0")
    painted = "new Promise((done) => { const look = () => { const row = document.querySelector('.item.call');"
    painted += "row ? requestAnimationFrame(() => done(performance.now() - window.pressed)) : requestAnimationFrame(look); }; look(); })"
    page.press("Enter")
    seen["firstPaintMs"] = round(page.ask(painted))
    seen["rows"] = page.ask("document.querySelectorAll('.item').length")
    # Frames while the view moves by 200 pixels each, into records that are loaded meanwhile.
    frames = page.ask("""new Promise((done) => { const box = document.querySelector('.scroller'); const times = []; let last = performance.now();
      const step = (now) => { times.push(now - last); last = now; box.scrollTop -= 200; times.length < 240 ? requestAnimationFrame(step) : done(times.slice(1)); };
      requestAnimationFrame(step); })""")
    frames.sort()
    seen["frameMs"] = [round(frames[len(frames) // 2], 1), round(frames[int(len(frames) * 0.95)], 1)]
    seen["after"] = page.ask("document.querySelectorAll('.item').length")
    page.click(".tab", "Records")
    records = "Number(document.querySelector('.bar')?.innerText.match(/([\\d,]+) records/)?.[1].replace(/,/g, ''))"
    seen["large"] = page.until("%s > 1000 && %s" % (records, records))
    page.press("G")
    seen["last"] = page.until("[...document.querySelectorAll('.row.trace .right')].map((cell) => cell.textContent).find((text) => text === '%d')" % seen["large"])


def outcome(daemon):
    while True:
        pending, daemon.aside = daemon.aside, []
        for message in pending or [json.loads(daemon.socket.recv(timeout=PATIENCE))]:
            evt = message.get("params", {}).get("evt", {})
            if evt.get("type") == "run_completed":
                return evt["result"]["status"]


if __name__ == "__main__":
    main(*sys.argv[1:])
