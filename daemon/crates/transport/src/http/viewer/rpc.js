// Calls the daemon's methods over a WebSocket that reconnects, and follows sessions over it.

/** Secret of a page that a link opened: one tab, until the daemon restarts. */
const PAGE_KEY = "cairn-viewer";
/** Secret of a paired browser, which stays paired when it is closed. */
const PAIRED_KEY = "cairn-viewer-paired";
const TAB_KEY = "cairn-viewer-tab";
/** Time without an answer after which the connection counts as lost (milliseconds). */
const ANSWER_MS = 60_000;
/** The same for a request that is repeated on the next connection. */
const RETRY_MS = 15_000;
/** Attempts of such a request before its failure is reported. */
const MAX_ATTEMPTS = 8;
const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 30_000;
/** Rejections in a row, by a daemon that can be reached, after which the page needs another link. */
const MAX_REJECTIONS = 3;

let socket;
let nextId = 0;
let pending = new Map();
let openers = [];
let rejections = 0;
let retry;
let pause = MIN_PAUSE_MS;
const followers = new Set();

/** Methods that this page may call. */
export let methods = [];
/** Hooks of the page: `state(name, detail)` with `connecting`, `open`, `lost` or `denied`; `open()` after each handshake; `approval()` when one is requested or answered. */
export const on = { state: () => {}, open: () => {}, approval: () => {} };
/** Records of approvals: of a session that this page follows, the daemon sends them instead of the notification. */
const APPROVAL_RECORDS = new Set(["approval_required", "approval_resolved"]);

/** Name under which answers of this tab are recorded, so that another browser can tell who answered. */
export const clientName = name();

function name() {
  const agent = navigator.userAgent;
  const browser = /Edg\//.test(agent) ? "Edge" : /Firefox\//.test(agent) ? "Firefox" : /Chrom(e|ium)\//.test(agent) ? "Chrome" : /Safari\//.test(agent) ? "Safari" : "browser";
  const system = /Android/.test(agent) ? "Android" : /iPhone|iPad/.test(agent) ? "iOS" : /Mac OS/.test(agent) ? "macOS" : /Windows/.test(agent) ? "Windows" : "Linux";
  let tab = sessionStorage.getItem(TAB_KEY);
  if (!tab) {
    tab = [...crypto.getRandomValues(new Uint8Array(2))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    sessionStorage.setItem(TAB_KEY, tab);
  }
  return `viewer (${browser} on ${system}, ${tab})`;
}

/** A failure that another link resolves. */
export class AccessError extends Error {}

const secret = () => sessionStorage.getItem(PAGE_KEY) ?? localStorage.getItem(PAIRED_KEY);

/** The code of a link, behind `pair=` if it pairs a browser, and the page to show. */
const LINK = /^#(pair=)?([0-9a-f]{32,64})(\/.*)?$/;
export const isLink = (hash) => LINK.test(hash);

/** Takes the code of the link out of the address, exchanges it for a secret, and connects; returns a remark, if there is one. */
export async function enter() {
  const link = location.hash.match(LINK);
  let remark;
  if (link) {
    // Removed from the address and the history before anything else happens.
    history.replaceState(null, "", `${location.pathname}#${link[3] ?? "/"}`);
    const known = secret();
    await (link[1] ? pair(link[2]) : exchange(link[2])).catch((error) => {
      // A page that has access already does not lose it by an old link.
      if (!known) throw error;
      remark = error.message;
    });
  }
  if (!secret()) {
    throw new AccessError(location.protocol === "https:"
      ? "This browser is not paired with the daemon. Run 'cairn pair' on its machine, and scan the code that it shows."
      : "This page needs a link. Run 'cairn viewer' in a terminal: it opens the page with one.");
  }
  await open();
  return remark;
}

async function exchange(code) {
  const answer = await fetch("/viewer/session", { method: "POST", body: code });
  if (!answer.ok) throw await refusal(answer);
  sessionStorage.setItem(PAGE_KEY, await answer.text());
}

async function pair(code) {
  const answer = await fetch("/viewer/pair", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code, name: clientName.replace(/^viewer \((.*), ....\)$/, "$1") }),
  });
  if (!answer.ok) throw await refusal(answer, "; run 'cairn pair' again, and scan its new code");
  const { secret: given } = await answer.json();
  sessionStorage.removeItem(PAGE_KEY);
  localStorage.setItem(PAIRED_KEY, given);
}

async function refusal(answer, advice = "") {
  const { error } = await answer.json().catch(() => ({ error: `the daemon answered with status ${answer.status}` }));
  return new AccessError(`${error}${advice}`);
}

function open() {
  clearTimeout(retry);
  return new Promise((resolve, reject) => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const mine = new WebSocket(`${scheme}://${location.host}/viewer/rpc`, ["cairn.v1", `bearer.${secret()}`]);
    socket = mine;
    let accepted = false;
    mine.onmessage = (event) => receive(JSON.parse(event.data));
    mine.onopen = async () => {
      try {
        const hello = { protocolVersions: ["1"], client: { name: clientName, version: "2" }, capabilities: { approvals: true } };
        const { version, capabilities } = await send(mine, "initialize", hello, ANSWER_MS);
        accepted = true;
        rejections = 0;
        methods = capabilities.methods;
        on.state("open", version);
        resolve();
        for (const opener of openers.splice(0)) opener();
        for (const follower of followers) follower.resume();
        on.open();
      } catch (error) {
        reject(error);
      }
    };
    mine.onclose = () => {
      if (socket !== mine) return;
      for (const { reject: fail, timer } of pending.values()) {
        clearTimeout(timer);
        fail(lost());
      }
      pending = new Map();
      if (!accepted) reject(lost());
      reconnect(accepted);
    };
  });
}

function lost() {
  const error = new Error("the connection to the daemon was lost");
  error.reason = "disconnected";
  return error;
}

/** Connects again; a daemon that can be reached and rejects the page several times has forgotten its secret. */
async function reconnect(wasOpen) {
  on.state("lost");
  pause = wasOpen ? MIN_PAUSE_MS : Math.min(MAX_PAUSE_MS, pause * 2);
  const reachable = !wasOpen && (await fetch("/healthz").then((answer) => answer.ok, () => false));
  rejections = reachable ? rejections + 1 : 0;
  if (rejections >= MAX_REJECTIONS) {
    on.state("denied", location.protocol === "https:"
      ? "The daemon no longer knows this browser: the pairing was revoked. Run 'cairn pair' on its machine for another."
      : "The daemon was restarted, or this page was closed for more than twelve hours. Run 'cairn viewer' for another link.");
    return;
  }
  clearTimeout(retry);
  retry = setTimeout(() => socket.readyState === WebSocket.CLOSED && open().catch(() => {}), pause * (1 + Math.random() / 5));
}

/** Connects at once when the network or the page comes back. */
function wake() {
  if (document.hidden || !socket || socket.readyState !== WebSocket.CLOSED || rejections >= MAX_REJECTIONS) return;
  open().catch(() => {});
}
addEventListener("online", wake);
document.addEventListener("visibilitychange", wake);

function send(to, method, params, timeout) {
  const id = (nextId += 1);
  return new Promise((resolve, reject) => {
    if (to?.readyState !== WebSocket.OPEN) return reject(lost());
    // A phone that changes its network may not notice that the connection is gone.
    const timer = setTimeout(() => to.close(), timeout);
    pending.set(id, { resolve, reject, timer });
    to.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  });
}

export function call(method, params = {}, timeout = ANSWER_MS) {
  return send(socket, method, params, timeout);
}

/** Resolves when there is a connection. */
const connected = () => (socket?.readyState === WebSocket.OPEN && methods.length ? Promise.resolve() : new Promise((resolve) => openers.push(resolve)));

/** Repeats a call on the next connection when its answer was lost: for requests that may be repeated. */
export async function callUntilAnswered(method, params) {
  for (let attempt = 1; ; attempt += 1) {
    await connected();
    try {
      return await call(method, params, RETRY_MS);
    } catch (error) {
      if (error.reason !== "disconnected" || attempt >= MAX_ATTEMPTS) throw error;
    }
  }
}

export const may = (method) => methods.includes(method);

function receive(message) {
  if (message.method) {
    const { subscriptionId, evt } = message.params ?? {};
    if (message.method === "approval.updated" || APPROVAL_RECORDS.has(evt?.type)) on.approval();
    for (const follower of followers) if (follower.id === subscriptionId) follower.receive(message.method, message.params);
    return;
  }
  const call = pending.get(message.id);
  pending.delete(message.id);
  clearTimeout(call?.timer);
  if (message.error) {
    const error = new Error([message.error.message, message.error.data?.hint].filter(Boolean).join("; "));
    error.reason = message.error.data?.reason;
    error.details = message.error.data?.details;
    call?.reject(error);
  } else call?.resolve(message.result);
}

/** Follows a session from a record on, over all reconnections. */
export class Follower {
  /** `take(record)` receives records and events in order; `gone(reason)` the end of the session. */
  constructor(sessionId, after, { take, gone, failed }) {
    this.sessionId = sessionId;
    this.after = after;
    this.hooks = { take, gone, failed };
    followers.add(this);
  }

  async resume() {
    const { subscriptionId } = await call("orchestrate.subscribe", { sessionId: this.sessionId, after: this.after }).catch((error) => {
      if (error.reason !== "disconnected") this.hooks.failed?.(error);
      return {};
    });
    if (!subscriptionId) return;
    if (followers.has(this)) this.id = subscriptionId;
    else call("orchestrate.unsubscribe", { subscriptionId }).catch(() => {});
  }

  receive(method, params) {
    if (method === "orchestrate.gone") this.hooks.gone?.(params.reason);
    if (method !== "orchestrate.event") return;
    if (params.seq) {
      // A record that was received before the connection was lost.
      if (params.seq <= this.after) return;
      this.after = params.seq;
    }
    this.hooks.take(params);
  }

  close() {
    followers.delete(this);
    if (this.id) call("orchestrate.unsubscribe", { subscriptionId: this.id }).catch(() => {});
  }
}
