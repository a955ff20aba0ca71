import type { Client } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Caller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Cipher } from '../ports/cipher.ts';
import { Clock } from '../ports/clock.ts';
import { Store } from '../ports/store.ts';
import { pickUpPlace } from './client-secret.ts';
import { readClientFor, saveClientFor } from './own-client.ts';
import { assertMayHoldSecret } from './restrictions.ts';

/** How often an erasure is tried anew when the client was changed meanwhile. */
const ATTEMPTS = 5;

/** Hands a new client's secret over once. One who comes second, or too late, has to rotate it. */
export class PickUpSecret extends needs({ store: Store, clock: Clock, cipher: Cipher }) {
  /** @throws Failure `not_found`, `gone`, or `forbidden` when another role made the secret. */
  async execute(caller: Caller, clientId: string): Promise<string> {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const secret = await this.#take(caller, clientId);
      if (secret !== undefined) return secret;
    }
    throw new Failure('conflict', 'the client is being changed; try again');
  }

  /** @returns undefined when somebody changed the client between reading and erasing. */
  async #take(caller: Caller, clientId: string): Promise<string | undefined> {
    const { store, clock, cipher } = this.ports;
    const client = await readClientFor(store, caller, clientId);
    assertMayHoldSecret(caller, client);
    const { pickUp } = client;
    if (pickUp === null) throw gone();
    if (!caller.roles.includes(pickUp.role)) {
      throw new Failure('forbidden', `only an administrator with ${pickUp.role} can fetch this secret`);
    }
    const expired = pickUp.expiresAt <= clock.now();
    const secret = expired ? '' : cipher.open(pickUp.sealedSecret, pickUpPlace(clientId)).toString('utf8');
    if (!(await this.#erase(caller, client))) return undefined;
    if (expired) throw gone();
    return secret;
  }

  /** The version decides between two that come at once: the loser reads again and finds nothing. */
  async #erase(caller: Caller, client: Client): Promise<boolean> {
    try {
      await saveClientFor(this.ports.store, caller, { ...client, pickUp: null });
      return true;
    } catch (error) {
      if (error instanceof Failure && error.code === 'conflict') return false;
      throw error;
    }
  }
}

function gone(): Failure {
  return new Failure('gone', 'there is no secret to fetch (any more); rotate it to get a new one');
}
