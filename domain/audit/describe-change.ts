import { hash } from 'node:crypto';
import type { Client } from '../clients/client.ts';
import { type AuditedKind, resourceOf } from '../resources.ts';
import { canonicalJson, type Json } from '../shared/json.ts';
import type { Resource } from '../shared/resource.ts';
import type { AuditAction, AuditChange, ChangedMember } from './audit-entry.ts';

type Members = Readonly<Record<string, unknown>>;

/** Properties that change with every write, or that the entry contains anyway. */
const UNLOGGED_PROPERTIES = ['id', 'tenantId', 'createdAt', 'updatedAt', 'version', 'revision', 'jwt'];

/** Limit of a value as JSON; longer ones are omitted. */
const MAX_VALUE_LENGTH = 2_000;

/** Describes a write: `previous` is undefined for a new object, `current` for a deleted one. */
export function describeChange(kind: AuditedKind, target: string, previous: object | undefined, current: object | undefined): AuditChange {
  if (current === undefined) return { action: 'removed', kind, target, changes: [] };
  const resource = resourceOf(kind);
  const changes = compare(resource, previous as Members | undefined, current as Members);
  if (previous === undefined) return { action: 'created', kind, target, changes };
  const members = changes.map(({ member }) => member);
  const action = resource.actionOf?.(previous as never, current as never, members) ?? 'changed';
  return { action, kind, target, changes };
}

/** Describes a change of a client; changes of its secret are separate actions. */
export function describeClient(previous: Client, current: Client, now: Date): AuditChange {
  const { clientId } = current;
  const secretChange = (action: AuditAction): AuditChange => ({
    action,
    kind: 'client',
    target: clientId,
    changes: [{ member: 'secret' }],
  });
  if (previous.secretHash !== current.secretHash) return secretChange('rotated');
  if (previous.pickUp !== null && current.pickUp === null) return secretChange(previous.pickUp.expiresAt <= now ? 'expired' : 'fetched');
  return describeChange('client', clientId, previous, current);
}

export function describeNewClient(client: Client): AuditChange {
  const { changes, ...entry } = describeChange('client', client.clientId, undefined, client);
  return { ...entry, changes: [...changes, { member: 'secret' }] };
}

/** Status values of credentials; Token Status List section 7.1. */
const ACTION_OF_STATUS: Readonly<Record<number, AuditAction>> = { 0: 'restored', 1: 'revoked', 2: 'suspended' };

/** @param changes of the status list entries of the session's credentials, all to the same status. */
export function describeRevocation(
  revocation: {
    readonly sessionId: string;
    readonly credentialConfigurationId?: string | undefined;
    /** Reason given by the caller. */
    readonly reason?: string | undefined;
  },
  changes: readonly { readonly status: number }[],
): AuditChange {
  const { sessionId, credentialConfigurationId, reason } = revocation;
  const status = changes[0]?.status ?? 0;
  return {
    action: ACTION_OF_STATUS[status] ?? 'changed',
    kind: 'session',
    target: sessionId,
    changes: [
      { member: 'status', after: status },
      { member: 'credentials', after: changes.length },
      ...(credentialConfigurationId === undefined ? [] : [{ member: 'credentialConfigurationId', after: credentialConfigurationId }]),
      ...(reason === undefined ? [] : [{ member: 'reason', after: reason }]),
    ],
  };
}

/** @param list of the wallet provider whose revocation caused the revocation of these sessions' credentials. */
export function describeRevokedWallets(list: string, credentials: number, sessionIds: readonly string[]): AuditChange {
  const changes = [
    { member: 'status', after: 1 },
    { member: 'credentials', after: credentials },
    { member: 'sessions', after: sessionIds },
  ];
  return { action: 'revoked', kind: 'wallet-status-list', target: list, changes };
}

/** @param list address without confidential parts. @param signer fingerprint of a signer that is not pinned. */
export function describeHeldList({
  list,
  ...details
}: {
  readonly list: string;
  readonly reason: string;
  readonly signer?: string;
  readonly until?: string;
}): AuditChange {
  const changes = Object.entries(details).map(([member, value]) => ({ member, after: value }));
  return { action: 'held', kind: 'followed-trust-list', target: list, changes };
}

/** @param list address without confidential parts. */
export function describeConfirmedSigner(list: string, fingerprint: string): AuditChange {
  const changes = [{ member: 'signer', after: fingerprint }];
  return { action: 'confirmed', kind: 'followed-trust-list', target: list, changes };
}

/** @param request PKCS#10 as base64 of its DER. */
export function describeCertificateRequest(keyChainId: string, request: string): AuditChange {
  const changes = [{ member: 'requestSha256', after: hash('sha256', Buffer.from(request, 'base64'), 'base64url') }];
  return { action: 'requested', kind: 'key-chain', target: keyChainId, changes };
}

/** @param id of the registration certificate at the registrar, if it returns one. */
export function describeRegistrationRequest(id: string | undefined): AuditChange {
  const changes = id === undefined ? [] : [{ member: 'registrationCertificate', after: id }];
  return { action: 'requested', kind: 'registrar-configuration', target: 'default', changes };
}

export function describeSessionRemoval(sessionId: string): AuditChange {
  return { action: 'removed', kind: 'session', target: sessionId, changes: [] };
}

export function describeCancellation(sessionId: string): AuditChange {
  return { action: 'cancelled', kind: 'session', target: sessionId, changes: [] };
}

export function describeShownSession(sessionId: string): AuditChange {
  return { action: 'shown', kind: 'session', target: sessionId, changes: [] };
}

export function describeRedelivery(sessionId: string, deliveryId: string): AuditChange {
  const changes = [{ member: 'delivery', after: deliveryId }];
  return { action: 'retried', kind: 'session', target: sessionId, changes };
}

export function describeDeferred(id: string, action: 'completed' | 'failed'): AuditChange {
  return { action, kind: 'deferred-transaction', target: id, changes: [] };
}

function compare(
  { auditedValues: auditedNames = [], auditedAs = {}, unaudited = [] }: Resource<never>,
  previous: Members | undefined,
  current: Members,
): ChangedMember[] {
  const unlogged = new Set([...UNLOGGED_PROPERTIES, ...unaudited]);
  const names = [...new Set([...Object.keys(previous ?? {}), ...Object.keys(current)])].sort();
  return names
    .filter((name) => !unlogged.has(name) && canonical(previous?.[name]) !== canonical(current[name]))
    .map((member) => {
      const identity = auditedNames.includes(member) ? (value: unknown) => value : undefined;
      const derive = (Object.hasOwn(auditedAs, member) ? auditedAs[member] : identity) as typeof identity;
      if (derive === undefined) return { member };
      const [previousValue, currentValue] = [previous?.[member], current[member]].map((value) => value && derive(value));
      return changedMember(member, previousValue, currentValue);
    });
}

function changedMember(member: string, previous: unknown, current: unknown): ChangedMember {
  const values = Object.entries({ before: previous, after: current }).filter(
    ([, value]) => value !== undefined && value !== null && canonical(value).length <= MAX_VALUE_LENGTH,
  );
  return { member, ...(Object.fromEntries(values) as { before?: Json; after?: Json }) };
}

/** Null and absent properties are equal. */
const canonical = (value: unknown) => canonicalJson(value, (member) => member !== null && member !== undefined);
