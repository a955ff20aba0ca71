import type { Client } from '../clients/client.ts';
import type { Json } from '../shared/json.ts';
import type { AuditAction, AuditChange, AuditKind, ChangedMember } from './audit-entry.ts';

type Members = Readonly<Record<string, unknown>>;

/** Members that change with every write and say nothing, or name what the entry names anyway. */
const SILENT: ReadonlySet<string> = new Set([
  'id',
  'tenantId',
  'createdAt',
  'updatedAt',
  'version',
  'revision',
  'jwt',
]);

/**
 * Members whose values stand in the log. Everything else appears by its name: free text and addresses can hold what
 * nobody should read here, and a hash of a short value gives the value away.
 */
const SHOWN: Partial<Readonly<Record<AuditKind, readonly string[]>>> = {
  tenant: ['name', 'status', 'sessionConfig', 'statusListConfig'],
  client: ['roles', 'allowedPresentationConfigs', 'allowedIssuanceConfigs'],
  'key-chain': ['usages', 'kmsProvider', 'rotationEnabled', 'rotationIntervalDays', 'certValidityDays'],
  'issuance-configuration': [
    'signingKeyId',
    'batchSize',
    'dPopRequired',
    'dPopNonce',
    'walletAttestationRequired',
    'refreshTokenSeconds',
    'requestEncryption',
    'responseEncryption',
  ],
  'credential-configuration': ['keyChainId', 'keyBinding', 'statusManagement', 'lifeTime'],
  'presentation-configuration': ['accessKeyChainId', 'lifeTime'],
  'status-list': ['keyChainId', 'bits', 'capacity', 'ttlSeconds', 'immediateUpdate', 'enableAggregation'],
  'trust-list': ['keyChainId', 'sequenceNumber'],
};

/** Characters of a value as JSON; a longer one is left out. */
const MAX_SHOWN = 2_000;

/** What a write made of a thing: `before` is undefined for a new one, `after` for one that went. */
export function describeChange(
  kind: AuditKind,
  target: string,
  before: object | undefined,
  after: object | undefined,
): AuditChange {
  if (after === undefined) return { action: 'removed', kind, target, changes: [] };
  const changes = compare(kind, before as Members | undefined, after as Members);
  const action =
    before === undefined ? 'created' : actionOf(kind, before as Members, after as Members, changes);
  return { action, kind, target, changes };
}

/** Of a client its secret is told apart from its rights, and both from each other's names in the store. */
export function describeClient(before: Client, after: Client, now: Date): AuditChange {
  const { clientId } = after;
  const entry = { kind: 'client', target: clientId } as const;
  if (before.secretHash !== after.secretHash) {
    return { ...entry, action: 'rotated', changes: [{ member: 'secret' }] };
  }
  if (before.pickUp !== null && after.pickUp === null) {
    const action = before.pickUp.expiresAt <= now ? 'expired' : 'fetched';
    return { ...entry, action, changes: [{ member: 'secret' }] };
  }
  return describeChange('client', clientId, withoutSecret(before), withoutSecret(after));
}

export function describeNewClient(client: Client): AuditChange {
  const { changes, ...entry } = describeChange('client', client.clientId, undefined, withoutSecret(client));
  return { ...entry, changes: [...changes, { member: 'secret' }] };
}

/** Status values of credentials; Token Status List section 7.1. */
const OF_STATUS: Readonly<Record<number, AuditAction>> = { 0: 'restored', 1: 'revoked', 2: 'suspended' };

/** @param changes of the status list entries of the session's credentials, all to the same status. */
export function describeRevocation(
  revocation: { readonly sessionId: string; readonly credentialConfigurationId?: string | undefined },
  changes: readonly { readonly status: number }[],
): AuditChange {
  const { sessionId, credentialConfigurationId } = revocation;
  const status = changes[0]?.status ?? 0;
  return {
    action: OF_STATUS[status] ?? 'changed',
    kind: 'session',
    target: sessionId,
    changes: [
      { member: 'status', after: status },
      { member: 'credentials', after: changes.length },
      ...(credentialConfigurationId === undefined
        ? []
        : [{ member: 'credentialConfigurationId', after: credentialConfigurationId }]),
    ],
  };
}

export function describeSessionRemoval(sessionId: string): AuditChange {
  return { action: 'removed', kind: 'session', target: sessionId, changes: [] };
}

export function describeDeferred(id: string, action: 'completed' | 'failed'): AuditChange {
  return { action, kind: 'deferred-transaction', target: id, changes: [] };
}

function withoutSecret({
  clientId: _clientId,
  secretHash: _secretHash,
  pickUp: _pickUp,
  ...rest
}: Client): object {
  return rest;
}

function compare(kind: AuditKind, before: Members | undefined, after: Members): ChangedMember[] {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after)])].sort();
  return names
    .filter((name) => !SILENT.has(name) && canonical(before?.[name]) !== canonical(after[name]))
    .map((member) =>
      SHOWN[kind]?.includes(member) ? shown(member, before?.[member], after[member]) : { member },
    );
}

function shown(member: string, before: unknown, after: unknown): ChangedMember {
  const values = Object.entries({ before, after }).filter(
    ([, value]) => value !== undefined && value !== null && canonical(value).length <= MAX_SHOWN,
  );
  return { member, ...(Object.fromEntries(values) as { before?: Json; after?: Json }) };
}

/** A key chain with another key was rotated; a trust list that only got a new release was renewed. */
function actionOf(
  kind: AuditKind,
  before: Members,
  after: Members,
  changes: readonly ChangedMember[],
): AuditAction {
  if (kind === 'key-chain')
    return canonical(handleOf(before)) === canonical(handleOf(after)) ? 'changed' : 'rotated';
  const isRelease = ({ member }: ChangedMember) => RELEASE.has(member);
  return kind === 'trust-list' && changes.every(isRelease) ? 'renewed' : 'changed';
}

const RELEASE: ReadonlySet<string> = new Set(['sequenceNumber', 'nextUpdate', 'signedBy']);

function handleOf(chain: Members): unknown {
  return (chain['active'] as { readonly key?: { readonly handle?: unknown } } | undefined)?.key?.handle;
}

/** One text for equal values, whatever the order of their members; null and absent are alike. */
function canonical(value: unknown): string {
  return JSON.stringify(value ?? null, (_name, member: unknown) => {
    if (typeof member !== 'object' || member === null || Array.isArray(member)) return member;
    return Object.fromEntries(
      Object.entries(member)
        .filter(([, inner]) => inner !== null && inner !== undefined)
        .sort(([one], [other]) => (one < other ? -1 : 1)),
    );
  });
}
