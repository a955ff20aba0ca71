import type { Bound } from './wallet-crypto.ts';

/** A credential with a status. */
export type Held = {
  readonly credential: string;
  readonly session: string;
  revoked: boolean;
  /** Presents what verifiers ask for, bound to a request. */
  readonly present: (request: Bound) => string;
};

/** What the wallets hold of one kind, used in turn. */
export class HeldCredentials {
  readonly all: Held[] = [];
  #turn = 0;

  next(fits: (held: Held) => boolean = () => true): Held {
    for (let tries = 0; tries < this.all.length; tries++) {
      const held = this.all[this.#turn++ % this.all.length];
      if (held !== undefined && fits(held)) return held;
    }
    throw new Error('there is no credential for this');
  }

  /** Begins with the first credential again. */
  rewind(): void {
    this.#turn = 0;
  }
}
