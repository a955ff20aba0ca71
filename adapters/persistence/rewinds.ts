import { StoreUnavailable } from '../../application/ports/store.ts';
import type { RewindWatch } from '../../application/rewinds/rewind-watch.ts';
import { type Change, onlyTakesBack } from '../../domain/changes/change.ts';
import { madeBefore, type UsedValue } from '../../domain/oauth/used-value.ts';
import { LastChanges } from './terms.ts';

/** What a store has to do with a database that may go back in time. */
export class Rewinds {
  readonly changes = new LastChanges();
  /** Says why nothing may be given away at this moment, and since when what counts once counts. */
  watch: Pick<RewindWatch, 'refusal' | 'fencedAt'> = { refusal: undefined, fencedAt: undefined };
  readonly #forgetters: (() => void)[] = [];

  onRewind(forget: () => void): void {
    this.#forgetters.push(forget);
  }

  forget(): void {
    this.changes.last = undefined;
    for (const forget of this.#forgetters) forget();
  }

  /** @throws StoreUnavailable while the database may have forgotten what was given away. */
  assertWhole(): void {
    const { refusal } = this.watch;
    if (refusal !== undefined) throw new StoreUnavailable(refusal);
  }

  /** @returns what it uses that is from before what was ended. @throws StoreUnavailable see `assertWhole`. */
  staleOf(change: Change): UsedValue | undefined {
    if (!onlyTakesBack(change)) this.assertWhole();
    return madeBefore(this.watch.fencedAt, change.uses ?? []);
  }
}
