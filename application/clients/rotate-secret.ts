import type { Caller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { Secrets } from '../ports/secrets.ts';
import { Store } from '../ports/store.ts';
import { readClientFor, saveClientFor } from './own-client.ts';
import { assertMayHoldSecret } from './restrictions.ts';

/** Replaces a client's secret. The new one is told here and nowhere else; an older one that waits is erased. */
export class RotateSecret extends needs({ store: Store, clock: Clock, random: Random, secrets: Secrets }) {
  /** @returns the new secret, 256 bits in base64url. @throws Failure `not_found`, `forbidden`. */
  async execute(caller: Caller, clientId: string): Promise<string> {
    const { store, clock, random, secrets } = this.ports;
    assertMayHoldSecret(caller, await readClientFor(store, caller, clientId));
    const secret = random.token(256);
    const secretHash = await secrets.hash(secret);
    // Read again: hashing takes long enough for somebody else to change the client.
    const client = await readClientFor(store, caller, clientId);
    assertMayHoldSecret(caller, client);
    await saveClientFor(store, caller, { ...client, secretHash, pickUp: null, updatedAt: clock.now() });
    return secret;
  }
}
