import { object, z } from 'zod';
import { listUpTo, Reference } from '../shared/bounds.ts';
import { Failure, invalidInput } from '../shared/failure.ts';
import type { TenantId } from '../shared/ids.ts';
import { Role } from './role.ts';

export type Client = {
  readonly clientId: string;
  /** Null for accounts that manage tenants. */
  readonly tenantId: TenantId | null;
  readonly roles: readonly Role[];
  readonly description: string | null;
  readonly allowedPresentationConfigs: readonly string[] | null;
  readonly allowedIssuanceConfigs: readonly string[] | null;
  /** Salted slow hash. The secret itself is not stored. */
  readonly secretHash: string;
  /** Number of replacements; access tokens contain it and become invalid with the secret. */
  readonly secretRevision: number;
  /** End of access tokens for the previous secret; null if they ended with it. */
  readonly formerSecretUntil: Date | null;
  /** A new secret, sealed, that can be fetched once. */
  readonly pickUp: SecretPickUp | null;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

export type SecretPickUp = {
  readonly sealedSecret: string;
  /** The role that created the secret; only an administrator with this role may fetch it. */
  readonly role: 'clients:manage' | 'tenants:manage';
  readonly expiresAt: Date;
};

/** Minutes within which a new secret can be fetched. */
export const PICK_UP_MINUTES = 10;

/** Limit for the validity of access tokens of a replaced secret. */
export const MAX_GRACE_SECONDS = 300;

/**
 * Replaces the secret of a client. A secret that waits for its pick-up is dropped.
 * @param graceSeconds during which access tokens of the current secret stay valid.
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

/** True if access tokens of this secret revision are valid. */
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
      `Ids of ${what} configurations that the client may use; empty or null for all. A client with such a list ` +
        'cannot write objects that all configurations depend on, such as keys and trust lists',
    );

export const ClientCreation = object({
  clientId: ClientId.describe('`client_id` at `POST /oauth2/token`; unique in the whole service'),
  roles: listUpTo(Role, 20).describe('Only roles of the caller can be granted'),
  secret: z
    .string()
    .min(16, 'at least 16 characters; generated if absent')
    .max(256)
    .regex(/^[\x21-\x7e]+$/, 'printable ASCII without spaces')
    .optional()
    .describe('Default: generated, and shown once'),
  description: z.string().max(1000).nullish().describe('For administrators'),
  allowedPresentationConfigs: allowList('presentation'),
  allowedIssuanceConfigs: allowList('credential'),
}).meta({ id: 'ClientCreation' });
export type ClientCreation = z.infer<typeof ClientCreation>;

export const ClientUpdate = ClientCreation.omit({ clientId: true, secret: true }).meta({ id: 'ClientUpdate' });
export type ClientUpdate = z.infer<typeof ClientUpdate>;

/**
 * A client can only grant roles that it has, and a tenant's client never manages tenants.
 * @throws Failure `invalid_input` for `tenants:manage`, `forbidden` for a role that the granter lacks.
 */
export function assertMayGrant(granted: readonly Role[], granter: readonly Role[]): void {
  if (granted.includes('tenants:manage')) throw invalidInput('roles', 'a client that manages tenants cannot belong to a tenant');
  const missingRoles = granted.filter((role) => !granter.includes(role));
  if (missingRoles.length > 0)
    throw new Failure('forbidden', `you can only grant roles that you hold; you lack ${missingRoles.join(', ')}`);
}

/** True if the client may not use all configurations. */
export function isRestricted(client: Pick<Client, 'allowedPresentationConfigs' | 'allowedIssuanceConfigs'>): boolean {
  const lists = [client.allowedPresentationConfigs, client.allowedIssuanceConfigs];
  return lists.some((allowed) => allowed !== null && allowed.length > 0);
}

/** An empty list or null permits all configurations. */
export function mayUse(allowed: readonly string[] | null, configurationId: string): boolean {
  return allowed === null || allowed.length === 0 || allowed.includes(configurationId);
}

/** @throws Failure `forbidden` for a configuration outside the client's list. */
export function assertMayUse(allowed: readonly string[] | null, configurationIds: readonly string[]): void {
  const foreign = configurationIds.find((id) => !mayUse(allowed, id));
  if (foreign !== undefined) throw new Failure('forbidden', `this client may not use the configuration ${JSON.stringify(foreign)}`);
}
