// The inbox of approvals: a list, and the one that is open.
import { ApprovalCard, sessionOf } from "./approval.js";
import { el, empty, fitted, icon, link, plain } from "./dom.js";
import { distance, shortFolder, titleOf } from "./format.js";
import { loadApprovals, removeApproval, watchApprovals } from "./poll.js";
import { Rows } from "./rows.js";
import { call } from "./rpc.js";

const ROW = 64;
const NARROW = matchMedia("(max-width: 760px)");

export class Inbox {
  constructor(id) {
    this.requested = id;
    this.data = [];
    this.names = new Map();
    this.rows = new Rows("request", ROW, "Pending approvals", (at) => this.cells(at), (at) => this.choose(at));
    // On a narrow screen the list and the open approval are two pages.
    this.rows.host.addEventListener("click", (event) => event.target.closest(".row") && NARROW.matches && this.openPage());
    this.detail = el("div", "inbox-detail");
    this.detail.setAttribute("aria-live", "off");
    this.total = el("span", "faint");
    this.total.setAttribute("role", "status");
    const back = link("/approvals", "icon-button back", icon("back"));
    back.setAttribute("aria-label", "Back to the list");
    this.node = el("div", "page inbox", el("header", "page-head", back, el("h1", "", "Approvals"), this.total), el("div", "inbox-panes", this.rows.host, this.detail));
  }

  begin() {
    this.stop = watchApprovals((all) => this.update(all));
    loadApprovals().catch(() => {});
  }

  close() {
    this.stop?.();
    this.rows.close();
  }

  /** The list may change at any time; the open approval stays open, even when another client answers it. */
  update(all) {
    this.data = all;
    this.total.textContent = all.length ? `${all.length} pending` : "";
    this.rows.size(all.length);
    const open = this.card?.approval.approvalId ?? this.opening;
    const at = all.findIndex((approval) => approval.approvalId === (open ?? this.requested));
    if (at >= 0) this.rows.choose(at, open !== undefined);
    else if (!all.length) this.nothing();
    else if (this.card) this.replaced();
    else if (this.requested) this.gone();
    else this.rows.choose(Math.min(this.rows.at, all.length - 1));
    this.node.classList.toggle("one", Boolean(this.requested));
  }

  nothing() {
    this.card = undefined;
    this.opening = undefined;
    this.detail.replaceChildren(empty("Nothing waits for you", "Calls of agents that need an answer appear here.", link("/", "button", "Home")));
  }

  gone() {
    this.detail.replaceChildren(empty("This approval was answered already", "The first answer counts.", link("/approvals", "button", "Other approvals")));
  }

  /** Another client has answered the open approval. */
  replaced() {
    this.card = undefined;
    if (this.requested) this.gone();
    else this.rows.choose(Math.min(this.rows.at, this.data.length - 1));
  }

  choose(at) {
    const approval = this.data[at];
    if (!approval || approval.approvalId === (this.card?.approval.approvalId ?? this.opening)) return;
    if (approval.shortened) this.load(approval.approvalId);
    else this.open(approval);
  }

  /** Opens an approval of which the list has a part. No key answers before it is complete. */
  async load(id) {
    this.card = undefined;
    this.opening = id;
    this.detail.replaceChildren(el("p", "faint", "Loading…"));
    const approval = await call("approval.get", { approvalId: id }).catch((error) => ({ problem: error.message }));
    if (this.opening !== id) return;
    if (!approval.problem) this.open(approval);
    else {
      this.opening = undefined;
      this.detail.replaceChildren(empty("This approval cannot be shown", plain(approval.problem)));
    }
  }

  open(approval) {
    this.opening = undefined;
    this.card = new ApprovalCard(approval, {
      answered: () => {
        this.card = undefined;
        // On a narrow screen the list is not visible: the next one is opened in its place.
        if (this.requested) this.requested = undefined;
        removeApproval(approval.approvalId);
        // The next one is open, but no key answers it before it is given the focus.
        if (!NARROW.matches) this.rows.host.focus({ preventScroll: true });
      },
    });
    this.detail.replaceChildren(this.card.node);
    this.detail.scrollTop = 0;
  }

  cells(at) {
    const approval = this.data[at];
    if (!approval) return undefined;
    const { sessionId } = approval;
    if (!this.names.has(sessionId)) {
      this.names.set(sessionId, undefined);
      sessionOf(sessionId).then((session) => {
        this.names.set(sessionId, `${titleOf(session)}${session.root ? ` · ${plain(shortFolder(session.root))}` : ""}`);
        this.rows.later();
      });
    }
    const title = approval.form ? `Question of ${plain(approval.form.server)}` : fitted(approval.preview.summary || approval.tool, 160);
    return [el("span", "row-title", title), el("span", "row-second faint", `${this.names.get(sessionId) ?? "…"} · ${distance(approval.createdAt)}`)];
  }

  key(key, at) {
    // What is not visible is not answered: on a narrow screen the list hides the approval.
    if ((!NARROW.matches || this.requested) && this.card?.key(key, at)) return true;
    if (key === "Enter" && this.data[this.rows.at]) {
      if (NARROW.matches && !this.requested) this.openPage();
      else this.card?.node.focus();
      return true;
    }
    if (key === "Escape" && this.card?.node.contains(document.activeElement)) {
      this.rows.host.focus();
      return true;
    }
    return this.rows.key(key);
  }

  openPage() {
    location.hash = `#/approvals/${this.data[this.rows.at].approvalId}`;
  }
}

