// Numbers, times and paths for people.
import { el, fitted } from "./dom.js";

/** Longest title that is put into the page, in characters; style sheets cut it further. */
const TITLE = 200;

export const number = (n) => Number(n ?? 0).toLocaleString("en");
export const count = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;

/** Millionths of a dollar as an amount. */
export function dollars(micro) {
  const amount = micro / 1e6;
  return `$${amount && amount < 0.1 ? amount.toFixed(4) : amount.toFixed(2)}`;
}

export function duration(millis) {
  if (millis < 1000) return `${Math.round(millis)} ms`;
  if (millis < 60_000) return `${(millis / 1000).toFixed(1)} s`;
  const minutes = Math.floor(millis / 60_000);
  return minutes < 60 ? `${minutes} min ${Math.round((millis % 60_000) / 1000)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** The distance of a time from now, in both directions. */
export function distance(time) {
  const minutes = Math.round((Date.now() - Date.parse(time)) / 60_000);
  const size = Math.abs(minutes);
  if (size < 1) return minutes < 0 ? "in a moment" : "now";
  const text = size < 60 ? `${size} min` : size < 1440 ? `${Math.floor(size / 60)} h` : `${Math.floor(size / 1440)} d`;
  return minutes < 0 ? `in ${text}` : `${text} ago`;
}

/** A time as its distance, with the local date and time as its title. */
export function when(time) {
  const node = el("time", "faint", distance(time));
  node.dateTime = time;
  node.title = new Date(time).toLocaleString();
  return node;
}

/** Local time of the day. */
export const clock = (time) => new Date(time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** The title of a session in one line. */
export const titleOf = (session, request) => fitted(session.title || request || session.sessionId || "session", TITLE);

/** The last two components of a folder, by which people know it. */
export function shortFolder(path) {
  const parts = String(path ?? "").split("/").filter(Boolean);
  return parts.length > 2 ? `…/${parts.slice(-2).join("/")}` : String(path ?? "");
}

const STATES = { idle: "new", running: "running", completed: "done", stopped: "stopped", failed: "failed", interrupted: "interrupted" };
const TONES = { failed: "bad", interrupted: "bad", exhausted: "bad", completed: "good", running: "live", waiting: "waits" };

/** A state as a mark with its name. */
export function chip(state, text = STATES[state] ?? state) {
  const dot = el("span", "dot");
  dot.setAttribute("aria-hidden", "true");
  return el("span", `chip ${TONES[state] ?? ""}`, dot, text);
}
