/** Client of a Cairn daemon, for browsers and Node. `cairn-client/node` finds the local one and starts it. */
export { CALL_TIMEOUT_MS, Client, connect } from "./client.js";
export type { ClientOptions, Notice, Opener, SearchOptions, Target } from "./client.js";
export * from "./errors.js";
export { ends, Follow } from "./follow.js";
export type { FollowOptions } from "./follow.js";
export type * from "./types.js";
export { PROTOCOL_VERSIONS } from "./types.js";
