import { object, z } from 'zod';
import { listUpTo, Reference } from '../shared/bounds.ts';
import { Failure, invalidInput } from '../shared/failure.ts';
import type { TenantId } from '../shared/ids.ts';
import { Role } from './role.ts';

export type Client = {
  readonly clientId: string;
  /** `null` only for accounts that manage tenants. */
  readonly tenantId: TenantId | null;
  readonly roles: readonly Role[];
  readonly description: string | null;
  readonly allowedPresentationConfigs: readonly string[] | null;
  readonly allowedIssuanceConfigs: readonly string[] | null;
  /** Salted slow hash. The secret itself is nowhere. */
  readonly secretHash: string;
  /** How often the secret was replaced; access tokens name it, and end with it. */
  readonly secretRevision: number;
  /** Until when tokens count that were made for the secret before; null where they ended with it. */
  readonly formerSecretUntil: Date | null;
  /** A new secret that waits, sealed, to be picked up once. */
  readonly pickUp: SecretPickUp | null;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

export type SecretPickUp = {
  readonly sealedSecret: string;
  /** The role that made the secret; only an administrator with it may fetch the secret. */
  readonly role: 'clients:manage' | 'tenants:manage';
  readonly expiresAt: Date;
};

/** Minutes for which a new secret can be fetched, once. */
export const PICK_UP_MINUTES = 10;

/** Seconds for which tokens of a replaced secret may count at most. */
export const MAX_GRACE_SECONDS = 300;

/**
 * The client with another secret. What waits to be picked up was the one before.
 * @param graceSeconds for which its access tokens of the present secret go on to count.
 */
export function withSecret(client: Client, secretHash: string, now: Date, graceSeconds = 0): Client {
  return {
    ...client,
    secretHash,
    secretRevision: client.secretRevision + 1,
    formerSecretUntil: graceSeconds === 0 ? null : new Date(now.getTime() + graceSeconds * 1000),
    pickUp: null,
    updatedAt: now,
  };
}

/** Whether an access token counts that was made when the secret had this revision. */
export function isSecretCurrent(
  { secretRevision, formerSecretUntil }: Pick<Client, 'secretRevision' | 'formerSecretUntil'>,
  revision: number,
  now: Date,
): boolean {
  if (revision === secretRevision) return true;
  return revision === secretRevision - 1 && formerSecretUntil !== null && now < formerSecretUntil;
}

export const ClientId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$/, 'letters, digits and . _ : @ -, at most 128');

const allowList = (what: string) =>
  z
    .array(Reference)
    .max(1000)
    .nullish()
    .describe(
      `ids of ${what} configurations that the client may use; empty or null for all. A client with such a list ` +
        'writes nothing that all configurations rest on, such as keys and trust lists',
    );

export const ClientCreation = object({
  clientId: ClientId.describe('`client_id` at `POST /oauth2/token`; unique in the whole service'),
  roles: listUpTo(Role, 20).describe('Only those that you hold yourself can be granted'),
  secret: z
    .string()
    .min(16, 'at least 16 characters; leave it out and one is generated')
    .max(256)
    .regex(/^[\x21-\x7e]+$/, 'printable ASCII without spaces')
    .optional()
    .describe('Generated, and shown once, unless stated'),
  description: z.string().max(1000).nullish().describe('For administrators'),
  allowedPresentationConfigs: allowList('presentation'),
  allowedIssuanceConfigs: allowList('credential'),
}).meta({ id: 'ClientCreation' });
export type ClientCreation = z.infer<typeof ClientCreation>;

export const ClientUpdate = ClientCreation.omit({ clientId: true, secret: true }).meta({ id: 'ClientUpdate' });
export type ClientUpdate = z.infer<typeof ClientUpdate>;

/**
 * Nobody grants a role that it does not hold, and a tenant's client never manages tenants.
 * @throws Failure `invalid_input` for `tenants:manage`, `forbidden` for a role the granter lacks.
 */
export function assertMayGrant(granted: readonly Role[], granter: readonly Role[]): void {
  if (granted.includes('tenants:manage')) throw invalidInput('roles', 'a client that manages tenants cannot belong to a tenant');
  const missing = granted.filter((role) => !granter.includes(role));
  if (missing.length > 0) throw new Failure('forbidden', `you can only grant roles that you hold; you lack ${missing.join(', ')}`);
}

/** Whether there are configurations that the client may not use. */
export function isRestricted(client: Pick<Client, 'allowedPresentationConfigs' | 'allowedIssuanceConfigs'>): boolean {
  const lists = [client.allowedPresentationConfigs, client.allowedIssuanceConfigs];
  return lists.some((allowed) => allowed !== null && allowed.length > 0);
}

/** Empty or null means all. */
export function mayUse(allowed: readonly string[] | null, configurationId: string): boolean {
  return allowed === null || allowed.length === 0 || allowed.includes(configurationId);
}

/** @throws Failure `forbidden` when a configuration is outside the client's list. */
export function assertMayUse(allowed: readonly string[] | null, configurationIds: readonly string[]): void {
  const foreign = configurationIds.find((id) => !mayUse(allowed, id));
  if (foreign !== undefined) throw new Failure('forbidden', `this client may not use the configuration ${JSON.stringify(foreign)}`);
}
