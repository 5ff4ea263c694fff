// Calls the daemon's methods over a WebSocket that reconnects.

const KEY = "cairn-viewer";
let socket;
let next = 0;
let waiting = new Map();
const listeners = new Set();

/** Methods that this page may call. */
export let methods = [];

export const on = { state: () => {}, open: () => {} };

/** Exchanges the code of the link, if there is one, for the secret of this page. */
export async function enter() {
  const code = location.hash.slice(1);
  if (code) {
    // Removed from the address and the history before anything else happens.
    history.replaceState(null, "", location.pathname);
    const answer = await fetch("/viewer/session", { method: "POST", body: code });
    if (!answer.ok) throw new Error((await answer.json()).error);
    sessionStorage.setItem(KEY, await answer.text());
  }
  if (!sessionStorage.getItem(KEY)) throw new Error("this page needs a link: run 'cairn viewer'");
  await open();
}

function open() {
  return new Promise((resolve, reject) => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    socket = new WebSocket(`${scheme}://${location.host}/viewer/rpc`, ["cairn.v1", `bearer.${sessionStorage.getItem(KEY)}`]);
    let shaken = false;
    socket.onmessage = (event) => take(JSON.parse(event.data));
    socket.onopen = async () => {
      try {
        const hello = { protocolVersions: ["1"], client: { name: "viewer", version: "1" }, capabilities: { approvals: true } };
        const said = await call("initialize", hello);
        shaken = true;
        methods = said.capabilities.methods;
        on.state(`Cairn ${said.version}`);
        resolve();
        on.open();
      } catch (error) {
        reject(error);
      }
    };
    socket.onclose = () => {
      for (const { reject: fail } of waiting.values()) fail(new Error("the connection ended"));
      waiting = new Map();
      if (!shaken) reject(new Error("the daemon rejected this page; run 'cairn viewer' for another link"));
      else again(100);
    };
  });
}

function again(pause) {
  on.state("reconnecting");
  setTimeout(() => open().catch((error) => (pause < 30_000 ? again(pause * 2) : on.state(error.message))), pause);
}

export function call(method, params = {}) {
  const id = ++next;
  return new Promise((resolve, reject) => {
    if (socket.readyState !== WebSocket.OPEN) return reject(new Error("there is no connection"));
    waiting.set(id, { resolve, reject });
    socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  });
}

/** Subscribes to notifications; the returned function unsubscribes. */
export function listen(hear) {
  listeners.add(hear);
  return () => listeners.delete(hear);
}

function take(message) {
  if (message.method) {
    for (const hear of listeners) hear(message.method, message.params);
    return;
  }
  const call = waiting.get(message.id);
  waiting.delete(message.id);
  if (message.error) {
    const error = new Error([message.error.message, message.error.data?.hint].filter(Boolean).join("; "));
    error.reason = message.error.data?.reason;
    call?.reject(error);
  } else call?.resolve(message.result);
}
