import type { ErrorData, Reason } from "./types.js";

/** Any failure of this client or of the daemon. */
export class CairnError extends Error {
  /** Whether the same may succeed later. */
  readonly retryable: boolean = false;

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No daemon has left its address. */
export class NotRunningError extends CairnError {
  override readonly retryable = true;
}

/** The daemon cannot be reached. */
export class ConnectError extends CairnError {
  override readonly retryable = true;
}

/** The daemon rejected the token. */
export class UnauthorizedError extends CairnError {}

/** This client and the daemon have no version of the protocol in common. */
export class IncompatibleError extends CairnError {}

/** The daemon did not start. */
export class StartError extends CairnError {}

/** The connection ended. What was asked may have been done; a call with a retry key can be sent again. */
export class ClosedError extends CairnError {
  override readonly retryable = true;
}

/** No answer came in time; the call was cancelled. */
export class TimedOutError extends CairnError {
  override readonly retryable = true;
}

/** The session that was followed is gone. */
export class GoneError extends CairnError {}

/** The daemon's answer to a call that failed. */
export class RpcError extends CairnError {
  override readonly retryable: boolean;
  /** Stable; the contract. */
  readonly reason: Reason;
  /** The way out. */
  readonly hint: string;
  readonly retryAfterMs: number | undefined;
  readonly details: unknown;

  constructor(
    readonly method: string,
    readonly code: number,
    message: string,
    data: Partial<ErrorData>,
  ) {
    super(`${method}: ${message} (${data.reason ?? code})${data.hint ? `; ${data.hint}` : ""}`);
    this.reason = (data.reason ?? "internal") as Reason;
    this.hint = data.hint ?? "";
    this.retryable = data.retryable ?? false;
    this.retryAfterMs = data.retryAfterMs ?? undefined;
    this.details = data.details;
  }
}
