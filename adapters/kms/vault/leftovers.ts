const MAX_NAMES = 1_000;
const MAX_TRIES = 10;
const PAUSE_MS = 10_000;

/**
 * Keys that were perhaps made, though the call that makes them failed: nobody knows them, so they are removed. One that
 * is not there is looked for once more, since Vault may carry out a call that was given up.
 */
export class Leftovers {
  readonly #remove: (name: string) => Promise<boolean>;
  /** How often each was tried. */
  readonly #tries = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #isSweeping = false;
  #isClosed = false;

  /** @param remove tells whether there was such a key. */
  constructor(remove: (name: string) => Promise<boolean>) {
    this.#remove = remove;
  }

  /** Nobody waits for it; what does not fit any more stays in Vault, unused. */
  add(name: string): void {
    if (this.#tries.size >= MAX_NAMES || this.#isClosed) return;
    this.#tries.set(name, 0);
    void this.#sweep();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    // What is added meanwhile comes last and is reached as well.
    for (const [name, tries] of this.#tries) {
      if (this.#isClosed) break;
      const wasThere = await this.#remove(name).catch(() => undefined);
      const isDone = wasThere === true || (wasThere === false && tries > 0) || tries + 1 >= MAX_TRIES;
      if (isDone) this.#tries.delete(name);
      else this.#tries.set(name, tries + 1);
    }
    this.#isSweeping = false;
    if (this.#tries.size > 0 && !this.#isClosed) {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.#sweep(), PAUSE_MS).unref();
    }
  }
}
