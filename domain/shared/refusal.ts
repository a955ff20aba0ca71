import refusals from './errors/refusals.json' with { type: 'json' };

/**
 * Reasons for rejecting a presented credential: the codes of `errors/refusals.json`, which explains them. Tests and the operator's report
 * use them; the wallet never learns more than the protocol allows.
 */
export type RefusalReason = keyof typeof refusals;
export const REFUSAL_REASONS = Object.keys(refusals) as RefusalReason[];

/** Thrown during the check of a presentation; the caller discards that presentation and continues. */
export class Refusal extends Error {
  readonly reason: RefusalReason;

  /** @param detail for the operator's report: names and numbers, never a claim's value. */
  constructor(reason: RefusalReason, detail?: string) {
    super(detail === undefined ? reason : `${reason}: ${detail}`);
    this.name = 'Refusal';
    this.reason = reason;
  }
}

/** The presentation belongs to another request: nothing of the whole response may be used (OpenID4VP 1.0 sections 14.1 and 14.2.2). */
export class NonceRefusal extends Refusal {
  constructor(reason: RefusalReason, detail = 'nonce') {
    super(reason, detail);
    this.name = 'NonceRefusal';
  }
}
