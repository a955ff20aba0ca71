import { PICK_UP_MINUTES, type SecretPickUp } from '../../domain/clients/client.ts';
import type { PortsOf } from '../needs.ts';
import { Cipher } from '../ports/cipher.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { Secrets } from '../ports/secrets.ts';

export const MAKING_SECRETS = { secrets: Secrets, random: Random, cipher: Cipher, clock: Clock };

export type NewSecret = {
  readonly secret: string;
  readonly secretHash: string;
  readonly pickUp: SecretPickUp;
};

/**
 * Takes the given secret, or makes one of 256 bits, for a client that comes into being.
 * @param role of the administrator who makes it; only that role may fetch it.
 */
export async function makeSecret(
  ports: PortsOf<typeof MAKING_SECRETS>,
  clientId: string,
  role: SecretPickUp['role'],
  given?: string,
): Promise<NewSecret> {
  const secret = given ?? ports.random.token(256);
  const secretHash = await ports.secrets.hash(secret);
  const expiresAt = new Date(ports.clock.now().getTime() + PICK_UP_MINUTES * 60_000);
  const sealedSecret = ports.cipher.seal(secret, pickUpPlace(clientId));
  return { secret, secretHash, pickUp: { sealedSecret, role, expiresAt } };
}

/** Where a waiting secret is sealed: copied to another client it does not open. */
export function pickUpPlace(clientId: string): string {
  return `clients/pick_up/${clientId}`;
}
