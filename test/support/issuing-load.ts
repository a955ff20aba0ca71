import { setTimeout as pause } from 'node:timers/promises';
import { createResource, offerBody } from './populated.ts';
import type { HeldCredential } from './present.ts';
import { newKey, RawWallet } from './raw-wallet.ts';
import { revoke } from './release-state.ts';
import type { Callable } from './test-service.ts';

export type IssuedUnderLoad = {
  readonly credential: HeldCredential;
  /** The link of the redeemed offer. */
  readonly uri: string;
  readonly isRevoked: boolean;
};

const BACKENDS = 3;
/** One in this many credentials is revoked right after its issuance. */
const REVOKED = 3;
/** The load stops by itself after this time. */
const MAX_DURATION_MS = 180_000;

/** A load of offers and redemptions until `end`. No request is repeated. */
export class IssuingLoad {
  readonly issued: IssuedUnderLoad[] = [];
  readonly failures: string[] = [];
  readonly #calls: Callable;
  readonly #token: string;
  readonly #loops: readonly Promise<void>[];
  readonly #until = Date.now() + MAX_DURATION_MS;
  #isOver = false;

  constructor(calls: Callable, token: string) {
    this.#calls = calls;
    this.#token = token;
    this.#loops = Array.from({ length: BACKENDS }, () => this.#loop());
  }

  /** Waits until `flows` more flows have ended, successfully or not. */
  async waitForFlows(flows: number): Promise<void> {
    const previousCount = this.#ended();
    while (this.#ended() < previousCount + flows) {
      if (Date.now() > this.#until) throw new Error(`${this.#ended()} flows ended, then none`);
      await pause(20);
    }
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  #ended(): number {
    return this.issued.length + this.failures.length;
  }

  async #loop(): Promise<void> {
    while (!this.#isOver && Date.now() < this.#until) {
      try {
        await this.#flow();
      } catch (error) {
        this.failures.push(String(error));
      }
    }
  }

  async #flow(): Promise<void> {
    const { uri, session } = await createResource(this.#calls, this.#token, '/issuer/offer', offerBody('pid'));
    const wallet = new RawWallet(this.#calls, 'acme');
    const holder = newKey();
    const answer = await wallet.request(await wallet.accessToken(uri), 'pid', { key: holder });
    if (answer.status !== 200) throw new Error(`credential: ${answer.status} ${answer.text}`);
    const credential = { text: answer.body.credentials[0].credential, holder, session };
    const isRevoked = this.issued.length % REVOKED === 0;
    if (isRevoked) await revoke(this.#calls, this.#token, credential);
    this.issued.push({ credential: credential, uri, isRevoked });
  }
}
