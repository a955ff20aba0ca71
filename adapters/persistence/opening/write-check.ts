import { StoreUnwritableError } from '../../../application/ports/store.ts';
import { namedStatement } from '../statement.ts';

/** The health endpoint is public, so the result of a check is reused for this long. */
const RESULT_TTL_MS = 1_000;
/**
 * A full disk may still accept so small a write, so the rejection of a larger write counts for this long. After that, requests are let in
 * again, and their writes are the next attempt.
 */
const REJECTION_TTL_MS = 5_000;

/** Row among the leases, because it belongs to no tenant and every process may write it. */
export const WRITE_CHECK = namedStatement(
  'write_check',
  `insert into leases (name, holder, expires_at) values ('write-check', '', $1)
   on conflict (name) do update set expires_at = excluded.expires_at`,
);

type Check = { countsUntil: number; readonly result: Promise<unknown> };

/** Detects if the database accepts writes: by a write of its own, and by the outcome of other writes. */
export class WriteCheck {
  readonly #write: () => Promise<unknown>;
  #last: Check | undefined;
  #refusal: { readonly at: number; readonly error: StoreUnwritableError } | undefined;

  /** @param write writes and commits one row. */
  constructor(write: () => Promise<unknown>) {
    this.#write = write;
  }

  readonly noteFailure = (error: unknown): void => {
    if (error instanceof StoreUnwritableError) this.#refusal = { at: performance.now(), error };
  };

  /** @throws StoreUnwritableError, or whatever the write failed with. */
  async assertWritable(): Promise<void> {
    const now = performance.now();
    if (this.#refusal !== undefined && now - this.#refusal.at < REJECTION_TTL_MS) throw this.#refusal.error;
    // A running check has no end yet, so no second one starts.
    if (this.#last === undefined || now >= this.#last.countsUntil) this.#last = this.#begin();
    await this.#last.result;
  }

  #begin(): Check {
    const check: Check = { countsUntil: Number.POSITIVE_INFINITY, result: this.#write() };
    const end = () => {
      check.countsUntil = performance.now() + RESULT_TTL_MS;
    };
    check.result.then(end, end);
    return check;
  }
}
