import { StoreUnwritable } from '../../../application/ports/store.ts';
import { named } from '../statement.ts';

/** Anybody may ask for our health: what was found out counts for so long. */
const COUNTS_MS = 1_000;
/**
 * A disk that is full still has room for so small a write; that a larger one was refused counts for so long. Then others are let
 * in again, whose writes are the next try.
 */
const REFUSAL_COUNTS_MS = 5_000;

/** Among the leases, since it belongs to nobody and is written by whoever comes. */
export const WRITE_CHECK = named(
  'write_check',
  `insert into leases (name, holder, expires_at) values ('write-check', '', $1)
   on conflict (name) do update set expires_at = excluded.expires_at`,
);

type Check = { countsUntil: number; readonly result: Promise<unknown> };

/** Finds out whether the database takes writes: by a real one, and by what came of those of others. */
export class WriteCheck {
  readonly #write: () => Promise<unknown>;
  #last: Check | undefined;
  #refusal: { readonly at: number; readonly error: StoreUnwritable } | undefined;

  /** @param write one row, committed. */
  constructor(write: () => Promise<unknown>) {
    this.#write = write;
  }

  /** What came of the write of somebody else. */
  readonly noteFailure = (error: unknown): void => {
    if (error instanceof StoreUnwritable) this.#refusal = { at: performance.now(), error };
  };

  /** @throws StoreUnwritable, or whatever the write failed with. */
  async assertWritable(): Promise<void> {
    const now = performance.now();
    if (this.#refusal !== undefined && now - this.#refusal.at < REFUSAL_COUNTS_MS) throw this.#refusal.error;
    // One that is under way has not ended yet: it is not joined by more of its kind.
    if (this.#last === undefined || now >= this.#last.countsUntil) this.#last = this.#begin();
    await this.#last.result;
  }

  #begin(): Check {
    const check: Check = { countsUntil: Number.POSITIVE_INFINITY, result: this.#write() };
    const end = () => {
      check.countsUntil = performance.now() + COUNTS_MS;
    };
    check.result.then(end, end);
    return check;
  }
}
