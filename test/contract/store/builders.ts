import { randomBytes, randomUUID } from 'node:crypto';
import type { Store } from '../../../application/ports/store.ts';
import type { Client } from '../../../domain/clients/client.ts';
import type { CredentialConfiguration } from '../../../domain/issuance/configuration.ts';
import type { DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import type { KeyChain } from '../../../domain/keys/key-chain.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import type { ConsumedValue } from '../../../domain/oauth/consumed-value.ts';
import type { NewGrant, Redemption } from '../../../domain/oauth/grant.ts';
import type { RegistrarConfiguration } from '../../../domain/registrar/registrar-configuration.ts';
import type { StoredRegistrationCertificate } from '../../../domain/registrar/registration-certificate.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch, StatusList } from '../../../domain/status-lists/status-list.ts';
import { NO_ORGANIZATION } from '../../../domain/tenants/organization.ts';
import type { Tenant } from '../../../domain/tenants/tenant.ts';

export const NOW = new Date('2030-05-01T12:00:00.123Z');

export function seconds(count: number): Date {
  return new Date(NOW.getTime() + count * 1000);
}

let tenants = 0;

/** A new tenant for each test, so that tests can share a store. */
export function aTenant(changes: Partial<Tenant> = {}): Tenant {
  return {
    id: `tenant-${++tenants}` as TenantId,
    name: 'Acme',
    description: null,
    status: 'active',
    sessionConfig: null,
    statusListConfig: null,
    kms: null,
    profile: null,
    endsAt: null,
    ...NO_ORGANIZATION,
    revision: 1,
    version: 1,
    createdAt: NOW,
    updatedAt: NOW,
    ...changes,
  };
}

export async function addTenant(store: Store, changes: Partial<Tenant> = {}): Promise<TenantId> {
  const tenant = aTenant(changes);
  await store.forService(({ tenants: all }) => all.add(tenant), { by: 'system' });
  return tenant.id;
}

export function aClient(tenantId: TenantId | null, changes: Partial<Client> = {}): Client {
  return {
    clientId: `client-${randomUUID()}`,
    tenantId,
    roles: ['issuance:offer'],
    description: null,
    allowedPresentationConfigs: null,
    allowedIssuanceConfigs: null,
    secretHash: 'hash',
    secretRevision: 0,
    formerSecretUntil: null,
    pickUp: null,
    version: 1,
    createdAt: NOW,
    updatedAt: NOW,
    ...changes,
  };
}

export function aConfiguration(id: string, changes: Partial<CredentialConfiguration> = {}): CredentialConfiguration {
  return {
    id,
    config: { format: 'dc+sd-jwt', display: [{ name: 'Diploma' }] },
    claims: { family_name: 'Mustermann' },
    keyBinding: true,
    statusManagement: false,
    createdAt: NOW,
    updatedAt: NOW,
    ...changes,
  };
}

export function aKeyChain(tenantId: TenantId, id: string): KeyChain {
  const handle = { kms: 'local', keyId: 'one', algorithm: 'ES256' } as const;
  const publicJwk = { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' } as const;
  return {
    id,
    tenantId,
    usages: ['signing'],
    kmsProvider: 'local',
    active: { key: { handle, publicJwk, sealedKey: 'sealed' }, certificates: ['MIIB'], notAfter: seconds(86_400) },
    rotationEnabled: false,
    rotationIntervalDays: 90,
    certValidityDays: 365,
    createdAt: NOW,
    updatedAt: NOW,
  };
}

export function aRegistrarConfiguration(changes: Partial<RegistrarConfiguration> = {}): RegistrarConfiguration {
  return {
    id: 'default',
    registrarUrl: 'https://registrar.example/api',
    oidcUrl: 'https://login.registrar.example',
    clientId: 'vidimus',
    username: 'acme',
    password: 'password at the registrar',
    createdAt: NOW,
    updatedAt: NOW,
    ...changes,
  };
}

export function aRegistrationCertificate(id: string): StoredRegistrationCertificate {
  return { id, certificateId: `issued ${id}`, jwt: 'e30.e30.AA', createdAt: NOW, updatedAt: NOW };
}

export function aSession(tenantId: TenantId, changes: Partial<Session> = {}): Session {
  return {
    tenantId,
    id: randomUUID() as SessionId,
    publicId: randomUUID() as PublicId,
    kind: 'issuance',
    status: 'active',
    version: 1,
    createdAt: NOW,
    updatedAt: NOW,
    expiresAt: seconds(300),
    configurationIds: ['diploma', 'licence'],
    useDcApi: false,
    request: {
      kind: 'issuance',
      offerRequest: { response_type: 'uri' },
      offer: { credential_issuer: 'https://issuer.example' },
      offerUrl: 'openid-credential-offer://?',
      credentialClaims: { diploma: { type: 'inline', claims: { family_name: 'Mustermann', år: [1, null] } } },
    },
    outcome: null,
    issuedMask: 0,
    claimedAt: null,
    ...changes,
  };
}

export function aGrant(session: Session, changes: Partial<NewGrant> = {}): NewGrant {
  return {
    id: randomUUID(),
    kind: 'pre_authorized_code',
    sessionId: session.id,
    publicId: session.publicId,
    codeHash: randomUUID(),
    txCodeHash: null,
    credentialConfigurationIds: session.configurationIds,
    expiresAt: seconds(300),
    server: 'built-in',
    authorization: null,
    ...changes,
  };
}

/** The redeemer of a grant in these tests. */
export const REDEMPTION: Redemption = {
  holder: { clientId: 'wallet', keyThumbprint: 'thumb', identifiers: false, refreshableUntil: 4_000_000_000 },
  until: seconds(3600),
};

/** Initial values of the other properties of a grant, before its redemption. */
export const UNUSED = { attempts: 0, consumedAt: null, holder: null, generation: 0, revokedAt: null };

export function aUse(kind: ConsumedValue['kind'] = 'dpop_jti', changes: Partial<ConsumedValue> = {}): ConsumedValue {
  return { kind, hash: randomUUID(), expiresAt: seconds(300), ...changes };
}

export function aBatch(session: Session, changes: Partial<IssuedBatch> = {}): IssuedBatch {
  return {
    id: randomUUID(),
    sessionId: session.id,
    credentialConfigurationId: 'diploma',
    count: 3,
    statusListId: 'list',
    firstCounter: 0,
    issuedAt: NOW,
    ...changes,
  };
}

export function aList(changes: Partial<StatusList> = {}): StatusList {
  return {
    id: randomUUID(),
    credentialConfigurationId: null,
    keyChainId: null,
    bits: 2,
    capacity: 1000,
    ttlSeconds: 3600,
    immediateUpdate: false,
    enableAggregation: true,
    secret: randomBytes(32),
    usedEntries: 0,
    version: 1,
    createdAt: NOW,
    token: null,
    tokenExpiresAt: null,
    ...changes,
  };
}

export async function addList(store: Store, tenantId: TenantId, changes: Partial<StatusList> = {}): Promise<StatusList> {
  const list = aList(changes);
  await store.forTenant(tenantId, ({ statusLists }) => statusLists.add(list), { by: 'system' });
  return list;
}

/** Opens a session with a grant and gives both back. */
export async function openOffer(
  store: Store,
  tenantId: TenantId,
  changes: { session?: Partial<Session>; grant?: Partial<NewGrant> } = {},
): Promise<{ session: Session; grant: NewGrant }> {
  const session = aSession(tenantId, changes.session);
  const grant = aGrant(session, changes.grant);
  await store.commit(tenantId, { serving: true, opens: { session, grant } }, session.createdAt);
  return { session, grant };
}

/** @returns the failure code of a promise that must be rejected. */
export async function failureOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return (error as { code?: unknown }).code ?? error;
  }
  return 'nothing failed';
}

export function anAuthorization(changes: Partial<Authorization> = {}): Authorization {
  return {
    id: randomUUID(),
    server: 'built-in',
    version: 1,
    createdAt: NOW,
    expiresAt: seconds(600),
    stage: 'pushed',
    request: {
      clientId: 'wallet',
      redirectUri: 'https://wallet.example/cb',
      codeChallenge: 'challenge',
      credentialConfigurationIds: ['diploma'],
      byDetails: false,
    },
    holder: { clientId: 'wallet' },
    session: null,
    handles: { request_uri: 'hash' },
    ...changes,
  };
}

export function aDeferred(session: Session, changes: Partial<DeferredTransaction> = {}): DeferredTransaction {
  return {
    id: randomUUID(),
    sessionId: session.id,
    publicId: session.publicId,
    grantId: 'grant',
    credentialConfigurationId: 'diploma',
    holderKeys: [{ kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }],
    status: 'pending',
    intervalSeconds: 5,
    credentials: null,
    batchId: null,
    errorMessage: null,
    walletStatuses: null,
    authorizedAt: null,
    createdAt: NOW,
    updatedAt: NOW,
    expiresAt: seconds(86_400),
    ...changes,
  };
}
