"""Cases of the viewer: hostile titles and answers, very many approvals, an approval of which the list has a part, two browsers at
once, a lost network, expired links, a page that stays open, text that arrives in pieces, a session that is started, steered and
cancelled.

Usage: misuse_page.py CHROMIUM ADDRESS TOKEN ROOT CASE [ARGUMENT]
Prints one JSON object of what was seen.
"""

import json
import sys

from devtools import opened
from viewer_page import Viewer, connect

# Text of the page that would do harm as HTML, as code or by its direction.
HARM = "[document.querySelectorAll('main img, main script, main iframe').length, window.harmed ?? null, (document.body.innerText.match(/[\\u202e\\u0007\\u001b]/g) ?? []).length]"
FITS = "document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll('main, .page, .scroller')].every((one) => one.scrollWidth <= one.clientWidth)"
TOASTS = "[...document.querySelectorAll('.toast')].map((one) => one.textContent).join('\\n')"

# The sockets of a page, and what it sends.
SPY = """window.sockets = []; const Real = WebSocket; window.dropped = [];
window.WebSocket = class extends Real { constructor(...given) { super(...given); window.sockets.push(this); }
  send(text) { const { method } = JSON.parse(text); if (window.dropped.includes(method)) return; super.send(text); window.sent?.(this, method); } };"""


def titles(page, daemon, address, root, seen, title):
    page.open(daemon, address)
    for name, route in [("home", "/"), ("sessions", "/sessions"), ("session", "/session/" + title)]:
        seen[name] = []
        for width in [1280, 390]:
            page.resize(width, 844)
            page.go(route)
            page.until("document.querySelector('main').innerText.includes('onerror')")
            seen[name].append([page.ask(HARM), page.ask(FITS), page.ask("document.querySelector('main').innerText.length"), page.ask("document.title.length")])


def many(page, daemon, address, root, seen, count):
    page.open(daemon, address)
    page.until("document.querySelector('.badge').textContent === '99+'")
    page.go("/approvals")
    page.until("document.querySelector('.page-head').innerText.includes('%s pending')" % count)
    seen["rows"] = page.ask("document.querySelectorAll('.row.request').length")
    seen["nodes"] = page.ask("document.querySelectorAll('*').length")
    page.press("G")
    seen["last"] = page.until("document.querySelector('.row.request.chosen')?.dataset.at === '%d' && document.querySelector('.row.request.chosen').innerText" % (int(count) - 1))
    page.press("g")
    page.ready_to_answer()
    page.press("n")
    seen["left"] = page.until("document.querySelector('.page-head').innerText.match(/(%d) pending/)?.[1]" % (int(count) - 1))
    seen["next"] = page.until("document.querySelector('.approval-title')?.textContent")


def shortened(page, daemon, address, root, seen, _):
    """The list has a part of the second approval: no key answers it before the page has all of it."""
    open_inbox(page, daemon, address)
    title = page.text(".approval-title")
    page.ask("window.dropped.push('approval.get'); window.answers = 0; window.sent = (_, method) => { if (method === 'approval.resolve') window.answers += 1; }; 0")
    page.press("j")
    page.until("document.querySelector('.inbox-detail').innerText === 'Loading…'")
    page.ask("new Promise((done) => setTimeout(done, 450))")
    for key in ["y", "a", "n"]:
        page.press(key)
    seen["early"] = page.ask("[window.answers, document.querySelectorAll('.inbox-detail button').length]")
    # Chosen again, with its request going through.
    page.press("k")
    page.until("document.querySelector('.approval-title')")
    page.ask("window.dropped.length = 0")
    page.press("j")
    page.ready_to_answer()
    seen["titles"] = [title, page.text(".approval-title")]
    seen["added"] = page.text(".approval .file-diff .figures .good")
    page.click(".approval .diff-scroll button", "more lines")
    page.until("document.querySelector('.approval .diff tr:last-child').innerText.includes('omitted')")
    seen["warning"] = page.text(".approval .warning")
    page.click(".approval summary", "Arguments")
    seen["end"] = page.until("document.querySelector('.approval').innerText.includes('the very last line')")
    page.press("y")
    seen["toast"] = page.until("%s" % TOASTS)


def open_inbox(page, daemon, address):
    page.call("Page.enable")
    page.call("Page.addScriptToEvaluateOnNewDocument", source=SPY)
    page.open(daemon, address)
    page.go("/approvals")
    page.ready_to_answer()


def two(page, daemon, address, root, seen, chromium):
    with opened(chromium, Viewer) as other:
        for one in [page, other]:
            open_inbox(one, daemon, address)
        # The second browser has not heard yet that the approval was answered.
        other.ask("window.dropped.push('approval.list'); 0")
        page.press("y")
        seen["first"] = page.until("%s" % TOASTS)
        other.press("n")
        seen["second"] = other.until("%s" % TOASTS)
        seen["name"] = page.ask("import('/viewer/rpc.js').then((one) => one.clientName)")


def network(page, daemon, address, root, seen, _):
    open_inbox(page, daemon, address)
    # The answer is sent, and the connection ends before its confirmation arrives.
    page.ask("window.answers = 0; window.sent = (socket, method) => { if (method !== 'approval.resolve') return; window.answers += 1; if (window.answers === 1) { socket.onmessage = null; setTimeout(() => socket.close(), 300); } }; 0")
    page.press("y")
    seen["toast"] = page.until("%s" % TOASTS)
    seen["answers"] = page.ask("window.answers")
    page.until("document.querySelector('.empty-title')")
    seen["problem"] = page.text(".approval .bad")


def links(page, daemon, address, root, seen, _):
    link = "http://%s%s" % (address, daemon.call("viewer.link")["path"])
    page.call("Page.enable")
    for name in ["first", "again"]:
        page.call("Page.navigate", url="about:blank")
        page.call("Page.navigate", url=link)
        page.until("document.querySelector('main .page')")
        if name == "first":
            page.until("document.querySelector('#state')?.textContent.startsWith('Cairn ')")
            page.ask("sessionStorage.clear(); 0")
        else:
            seen["used"] = page.until("document.querySelector('.gate')?.innerText")
    page.call("Page.navigate", url="about:blank")
    page.call("Page.navigate", url="http://%s/viewer#/sessions" % address)
    seen["bare"] = page.until("document.querySelector('.gate')?.innerText")
    page.ask("sessionStorage.setItem('cairn-viewer', 'forgotten'); location.reload(); 0")
    seen["forgotten"] = page.until("document.getElementById('banner')?.className === 'denied' && document.getElementById('banner').innerText")


def day(page, daemon, address, root, seen, session):
    """Very many records arrive while the page is open, and its connection ends several times."""
    page.call("Page.enable")
    page.call("Page.addScriptToEvaluateOnNewDocument", source=SPY)
    page.open(daemon, address)
    page.go("/session/" + session)
    page.until("document.querySelector('.composer')")
    counts = []
    for part in range(4):
        for _ in range(500):
            daemon.call("tool.call", sessionId=session, name="fs_list_dir", arguments={"path": "."})
        last(daemon, session, part)
        page.until("[...document.querySelectorAll('.call-target')].some((one) => one.textContent.includes('last-%d'))" % part)
        counts.append(page.ask("document.querySelectorAll('.item').length"))
        page.ask("window.sockets.at(-1).close(); 0")
    seen["items"] = counts
    page.until("document.getElementById('banner').hidden && window.sockets.length >= 5")
    last(daemon, session, "end")
    page.until("[...document.querySelectorAll('.call-target')].some((one) => one.textContent.includes('last-end'))")
    seen["ends"] = page.ask("[...document.querySelectorAll('.call-target')].map((one) => one.textContent).filter((text) => text.includes('last-'))")
    seen["head"] = daemon.call("session.get", sessionId=session)["headSeq"]


def last(daemon, session, part):
    """A call that can be recognised: of a folder that is missing."""
    try:
        daemon.call("tool.call", sessionId=session, name="fs_list_dir", arguments={"path": "last-%s" % part})
    except RuntimeError:
        pass


def pieces(page, daemon, address, root, seen, _):
    """Text that arrives in pieces, of which some are repeated by records and some are lost, and an answer that would do harm."""
    page.open(daemon, address)
    seen["texts"] = page.ask("""import('/viewer/conversation.js').then(({ Conversation }) => {
      const one = new Conversation();
      const steps = [];
      const delta = (offset, text) => one.live({ type: 'token_delta', runId: 'r', offset, text });
      const record = (seq, evt) => one.add({ kind: 'Evt', seq, ts: '2026-01-01T00:00:00.000Z', evt });
      const look = () => steps.push(one.items.filter((item) => item.type === 'text').map((item) => item.text + item.tail));
      delta(0, 'Grü'); delta(4, 'ße'); look();
      record(1, { type: 'text', runId: 'r', offset: 0, text: 'Grü' }); look();
      delta(99, 'lost'); delta(7, '!'); look();
      record(2, { type: 'text', runId: 'r', offset: 4, text: 'ße! Bye' }); look();
      record(3, { type: 'model_answer', runId: 'r' });
      delta(0, 'Next'); look();
      const call = (seq, output) => { record(seq, { type: 'tool_call', callId: 'c0', name: 'read_file', arguments: {} });
        record(seq + 1, { type: 'tool_result', callId: 'c0', name: 'read_file', output, millis: 1 }); };
      call(4, 'a'); call(6, 'b');
      return [steps, one.items.filter((item) => item.type === 'call').map((item) => [item.state, item.output])]; })""")
    # The error that ends a turn is shown once; one before it as well.
    seen["failures"] = page.ask("""import('/viewer/conversation.js').then(({ Conversation }) => {
      const one = new Conversation();
      const record = (seq, evt) => one.add({ kind: 'Evt', seq, ts: '2026-01-01T00:00:00.000Z', evt });
      record(1, { type: 'run_started' });
      record(2, { type: 'error', op: 'agent', message: 'first' });
      record(3, { type: 'error', op: 'agent', message: 'last' });
      record(4, { type: 'run_completed', result: { turnId: 't', status: 'failed', error: { message: 'last' } } });
      record(5, { type: 'error', op: 'agent', message: 'later' });
      return one.items.map((item) => item.text ?? item.error.message); })""")
    seen["markdown"] = page.ask("""import('/viewer/markdown.js').then(({ markdown }) => {
      const node = markdown('# Big\\n\\n### Small\\n\\n<img src=x onerror="window.harmed=1"> [a](javascript:window.harmed=1) [b](https://example.org/?q=1) ![c](https://example.org/c.png) <script>window.harmed=1</script>\\n\\n' + '> '.repeat(500) + 'deep \u202e text');
      document.querySelector('main').append(node);
      return [node.querySelectorAll('img, script').length, [...node.querySelectorAll('a')].map((one) => one.href), window.harmed ?? null, [...node.querySelectorAll('h1, h2, h3, h4, h5, h6')].map((one) => one.tagName),
        node.textContent.includes('\u202e'), node.textContent.includes('<img src=x')]; })""")


def steer(page, daemon, address, root, seen, _):
    """A session that is started from the page; its turn receives a message and is cancelled."""
    page.open(daemon, address)
    page.press("c")
    page.until("document.activeElement?.id === 'start-text' && document.querySelector('select option[value=%s]')" % json.dumps(root))
    page.call("Input.insertText", text="write it\nplease")
    page.click("form.start-form button", "Start")
    page.until("location.hash.startsWith('#/session/') && document.querySelector('.item.approval .answers')")
    seen["title"] = page.text("h1")
    seen["state"] = page.until("document.querySelector('.session-head .chip').innerText.includes('waits') && document.querySelector('.session-head .chip').innerText")
    page.press("i")
    page.until("document.activeElement?.tagName === 'TEXTAREA'")
    page.call("Input.insertText", text="use other words")
    page.click(".composer button", "Send now")
    seen["steered"] = page.until("[...document.querySelectorAll('.item.user')].map((one) => one.innerText).find((text) => text.includes('use other words'))")
    page.click(".composer button", "Cancel turn")
    seen["end"] = page.until("document.querySelector('.item.end')?.innerText")
    seen["call"] = page.until("document.querySelector('.item.call details').dataset.state")
    page.go("/")
    seen["home"] = page.until("document.querySelector('.entry')?.innerText")


def keys(page, daemon, address, root, seen, table):
    """Plays sequences of keys on the module of the rules: `?` is the drawing, `f` and `b` the focus and its loss, `.` 100 ms, `_` 500 ms."""
    page.open(daemon, address)
    seen["outcomes"] = page.ask("""import('/viewer/answer_keys.js').then(({ AnswerKeys }) => %s.map((script) => {
      const lasting = { a: 'session', A: 'always', p: 'pattern session', P: 'pattern always' };
      let [keys, now, last, events] = [undefined, 1000, -Infinity, []];
      for (const sign of script) {
        if (sign === '?') keys = new AnswerKeys(lasting, now);
        else if (sign === 'f') keys.focus(now);
        else if (sign === 'b') keys.blur();
        else if (sign === '.' || sign === '_') now += sign === '.' ? 100 : 500;
        else {
          now += 10;
          const effect = keys.press({ '↵': 'Enter', '⎋': 'Escape' }[sign] ?? sign, now, last);
          if (effect?.answer) events.push(effect.answer);
          last = now;
        }
      }
      return events.join(' ');
    }))""" % table)


def unfocused(page, daemon, address, root, seen, _):
    """What is typed for a new session, and for a request that was answered, answers no other request."""
    page.open(daemon, address)
    page.press("c")
    page.until("document.activeElement?.id === 'start-text' && document.querySelector('select option[value=%s]')" % json.dumps(root))
    page.call("Input.insertText", text="write it")
    page.click("form.start-form button", "Start")
    page.until("document.querySelector('.item.approval .answers')")
    page.pause()
    for key in ["y", "a", "Enter"]:
        page.press(key)
    # Enter gave it the focus, too shortly before.
    page.press("y")
    seen["focus"] = page.ask("document.activeElement.classList.contains('approval')")
    page.pause()
    seen["pending"] = len(daemon.call("approval.list")["data"])
    page.press("A")
    seen["step"] = page.until("document.querySelector('.confirmation')?.innerText")
    page.press("Enter")
    page.pause()
    seen["burst"] = len(daemon.call("approval.list")["data"])
    page.press("Escape")
    seen["back"] = page.until("!document.querySelector('.confirmation') && document.querySelectorAll('.answer').length")
    page.pause()
    page.press("a")
    page.pause()
    page.press("Enter")
    seen["toast"] = page.until("%s.includes('Allowed') && %s" % (TOASTS, TOASTS))


def following(page, daemon, address, root, seen, _):
    """An answer opens the next request, which takes no key before it is given the focus."""
    open_inbox(page, daemon, address)
    title = page.text(".approval-title")
    page.press("y")
    page.until("document.querySelector('.approval-title') && document.querySelector('.approval-title').textContent !== %s" % json.dumps(title))
    page.press("y")
    page.pause()
    page.press("y")
    page.press("a")
    page.pause()
    seen["pending"] = len(daemon.call("approval.list")["data"])
    page.press("Enter")
    page.pause()
    page.press("y")
    seen["end"] = page.until("document.querySelector('.empty-title')?.textContent")


CASES = {"keys": keys, "unfocused": unfocused, "following": following, "shortened": shortened, "pieces": pieces, "steer": steer, "titles": titles, "many": many, "two": two, "network": network, "links": links, "day": day}


def main(chromium, address, token, root, case, argument=""):
    daemon = connect(address, token)
    seen = {}
    with opened(chromium, Viewer) as page:
        CASES[case](page, daemon, address, root, seen, argument)
    print(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
