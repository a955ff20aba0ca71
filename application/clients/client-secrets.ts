import { type Client, PICK_UP_MINUTES, type SecretPickUp, withSecret } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Caller } from '../caller.ts';
import { needs, type PortsOf } from '../needs.ts';
import { Cipher } from '../ports/cipher.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { Secrets } from '../ports/secrets.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { changeTenant } from '../transactions/tenant-changes.ts';
import { assertMayHoldSecret } from './restrictions.ts';

export const SECRET_CREATION_PORTS = { secrets: Secrets, random: Random, cipher: Cipher, clock: Clock };

type GeneratedField = 'secretHash' | 'secretRevision' | 'formerSecretUntil' | 'pickUp' | 'version' | 'createdAt' | 'updatedAt';
type NewClient = Omit<Client, GeneratedField>;

/**
 * Creates a client. Its secret, the given one or one of 256 bits, waits to be picked up.
 * @param role of the administrator who creates it; only that role may fetch the secret.
 */
export async function createClient(
  ports: PortsOf<typeof SECRET_CREATION_PORTS>,
  clientFields: NewClient,
  role: SecretPickUp['role'],
  givenSecret?: string,
): Promise<{ readonly client: Client; readonly secret: string }> {
  const secret = givenSecret ?? ports.random.token(256);
  const secretHash = await ports.secrets.hash(secret);
  const now = ports.clock.now();
  const expiresAt = new Date(now.getTime() + PICK_UP_MINUTES * 60_000);
  const sealedSecret = ports.cipher.seal(secret, pickUpContext(clientFields.clientId));
  const pickUp = { sealedSecret, role, expiresAt };
  const roles = [...new Set(clientFields.roles)];
  const initialState = { secretRevision: 0, formerSecretUntil: null, version: 1, createdAt: now, updatedAt: now };
  const client = { ...clientFields, ...initialState, roles, secretHash, pickUp };
  return { client, secret };
}

/** Sealing context of a waiting secret: copied to another client it does not decrypt. */
function pickUpContext(clientId: string): string {
  return `clients/pick_up/${clientId}`;
}

/**
 * Reads a client that the caller may administer: of its own tenant, or any for an account that manages tenants.
 * @throws Failure `not_found` for an unknown client and for one of another tenant.
 */
export async function readClientFor(store: Store, caller: Caller, clientId: string): Promise<Client> {
  if (caller.tenantId !== null) return store.forTenant(caller.tenantId, ({ clients }) => clients.get(clientId));
  const client = await store.forService(({ clients }) => clients.find(clientId));
  if (client === undefined) throw new Failure('not_found', 'there is no such client');
  return client;
}

/** @throws Failure `conflict` when the client was changed since it was read. */
async function saveClientFor(store: Store, caller: Caller, client: Client): Promise<Client> {
  return caller.tenantId === null
    ? store.forService(({ clients }) => clients.save(client), { by: caller })
    : changeTenant(store, caller, ({ clients }) => clients.save(client));
}

/** Limit of retries after concurrent changes of the client. */
const MAX_ATTEMPTS = 5;

/** Returns a new client's secret once. A second or late caller has to rotate it. */
export class PickUpSecret extends needs({ store: Store, clock: Clock, cipher: Cipher }) {
  /** @throws Failure `not_found`, `gone`, or `forbidden` when another role created the secret. */
  async execute(caller: Caller, clientId: string): Promise<string> {
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
      const secret = await this.#fetch(caller, clientId);
      if (secret !== undefined) return secret;
    }
    throw new Failure('conflict', 'the client is being changed; try again');
  }

  /** @returns undefined when the client was changed between reading and erasing. */
  async #fetch(caller: Caller, clientId: string): Promise<string | undefined> {
    const { store, clock, cipher } = this.ports;
    const client = await readClientFor(store, caller, clientId);
    assertMayHoldSecret(caller, client);
    const { pickUp } = client;
    if (pickUp === null) throw secretGoneError();
    if (!caller.roles.includes(pickUp.role)) {
      throw new Failure('forbidden', `only an administrator with ${pickUp.role} can fetch this secret`);
    }
    const expired = pickUp.expiresAt <= clock.now();
    const secret = expired ? '' : cipher.open(pickUp.sealedSecret, pickUpContext(clientId)).toString('utf8');
    if (!(await this.#erase(caller, client))) return undefined;
    if (expired) throw secretGoneError();
    return secret;
  }

  /** The version decides between concurrent calls: the loser reads again and finds nothing. */
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

function secretGoneError(): Failure {
  return new Failure('gone', 'no secret can be fetched, or no longer; rotate it to get a new one');
}

/**
 * Replaces a client's secret. The new one is returned only here; an older one that waits is erased, and access
 * tokens that were obtained with it become invalid.
 */
export class RotateSecret extends needs({ store: Store, clock: Clock, random: Random, secrets: Secrets, settings: ServiceSettings }) {
  /**
   * @param graceSeconds for which existing access tokens remain valid.
   * @returns the new secret, 256 bits in base64url. @throws Failure `not_found`, `forbidden`.
   */
  async execute(caller: Caller, clientId: string, graceSeconds = 0): Promise<string> {
    const { store, clock, random, secrets, settings } = this.ports;
    // Tenants get no details about a client of another tenant.
    if (caller.tenantId === null && clientId === settings.rootClient.clientId)
      throw new Failure(
        'not_found',
        'the built-in client is not stored: change its secret by AUTH_CLIENT_SECRET and a restart of all processes',
      );
    assertMayHoldSecret(caller, await readClientFor(store, caller, clientId));
    const secret = random.token(256);
    const secretHash = await secrets.hash(secret);
    // Read again: the client may have been changed during the slow hash.
    const client = await readClientFor(store, caller, clientId);
    assertMayHoldSecret(caller, client);
    await saveClientFor(store, caller, withSecret(client, secretHash, clock.now(), graceSeconds));
    return secret;
  }
}
