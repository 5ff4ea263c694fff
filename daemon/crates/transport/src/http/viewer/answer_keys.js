// The keys that answer an approval: which key does what, and when. A function of its arguments alone: every time is a value.

/** Time in which no key answers, after the approval was drawn, after it got the focus, and after any other key (milliseconds). */
export const ARMING_MS = 400;

/** Answers for the call itself, by key. */
const SINGLE = { y: "once", n: "deny" };

export class AnswerKeys {
  /** `lasting` has the answers that outlive the call, by key: one key selects it, Enter confirms it. */
  constructor(lasting, drawnAt) {
    this.lasting = lasting;
    this.drawnAt = drawnAt;
    this.focusedAt = undefined;
    this.selected = undefined;
    this.selectedAt = undefined;
  }

  focus(at) {
    this.focusedAt ??= at;
  }

  /** An approval without the focus takes no key, and what was selected is forgotten. */
  blur() {
    this.focusedAt = undefined;
    this.selected = undefined;
  }

  /** Whether a key at a time would answer; `previous` is the time of the key before it. */
  isArmed(at, previous = -Infinity) {
    return this.focusedAt !== undefined && [this.drawnAt, this.focusedAt, previous].every((since) => at - since >= ARMING_MS);
  }

  select(answer, at) {
    this.selected = answer;
    this.selectedAt = at;
  }

  /** Whether the selected answer may be confirmed at a time, by whatever means. */
  mayConfirm(at) {
    return this.selected !== undefined && at - this.selectedAt >= ARMING_MS;
  }

  /**
   * The effect of a key: `{ answer }` to send, `{ selected }` or `{ back: true }` to draw, `{}` for a key that the approval takes without
   * an effect, and nothing for a key that is not its own.
   */
  press(key, at, previous) {
    if (this.focusedAt === undefined) return undefined;
    if (key === "Escape" && this.selected !== undefined) {
      this.selected = undefined;
      return { back: true };
    }
    const isConfirmation = key === "Enter" && this.selected !== undefined;
    if (!isConfirmation && !(key in this.lasting) && !(key in SINGLE)) return undefined;
    if (!this.isArmed(at, previous)) return {};
    if (isConfirmation) return this.mayConfirm(at) ? { answer: this.selected } : {};
    if (key in SINGLE) return { answer: SINGLE[key] };
    this.select(this.lasting[key], at);
    return { selected: this.selected };
  }
}
