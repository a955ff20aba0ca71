import type { Bound } from './wallet-crypto.ts';

/** A credential with a status. Nobody revokes it, so that it can be presented in every scenario. */
export type Held = {
  readonly credential: string;
  readonly session: string;
  /** Presents what verifiers ask for, bound to a request. */
  readonly present: (request: Bound) => string;
};

/** What the wallets hold of one kind, used in turn. */
export class HeldCredentials {
  readonly all: Held[] = [];
  #turn = 0;

  next(): Held {
    const held = this.all[this.#turn++ % this.all.length];
    if (held === undefined) throw new Error('there is no credential for this');
    return held;
  }

  /** Begins with the first credential again. */
  rewind(): void {
    this.#turn = 0;
  }
}
