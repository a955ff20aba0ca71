import { LRUCache } from 'lru-cache';
import type { SessionId } from '../../domain/shared/ids.ts';
import { boundedBytes } from '../bounded.ts';

/** Bodies that nobody can open say nothing of who sent them; whoever saw the address can send some. */
export const UNDECRYPTED_TRIES = 5;
const MAX_BYTES = 1024 * 1024;

/**
 * Counts, in each process, what was sent to a request and does not decrypt: the first few leave it open for the wallet
 * that was asked, so that a stranger's noise does not end a presentation, and the last one says why it ended.
 */
export class UndecryptedTries {
  readonly #tries = new LRUCache<SessionId, number>(boundedBytes(MAX_BYTES, () => 8));
  readonly #counted = new WeakSet<object>();

  /** @param message the same one may be judged twice, and counts once. @returns whether the request stays open. */
  leaveOpen(id: SessionId, message: object): boolean {
    const known = this.#tries.get(id) ?? 0;
    const tries = this.#counted.has(message) ? known : known + 1;
    this.#counted.add(message);
    this.#tries.set(id, tries);
    return tries < UNDECRYPTED_TRIES;
  }
}
