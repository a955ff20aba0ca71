import { hash } from 'node:crypto';
import type { Client } from '../clients/client.ts';
import { type AuditedKind, resourceOf } from '../resources.ts';
import { canonicalJson, type Json } from '../shared/json.ts';
import type { Resource } from '../shared/resource.ts';
import type { AuditAction, AuditChange, ChangedMember } from './audit-entry.ts';

type Members = Readonly<Record<string, unknown>>;

/** Members that change with every write and say nothing, or name what the entry names anyway. */
const SILENT = ['id', 'tenantId', 'createdAt', 'updatedAt', 'version', 'revision', 'jwt'];

/** Characters of a value as JSON; a longer one is left out. */
const MAX_SHOWN = 2_000;

/** What a write made of a thing: `before` is undefined for a new one, `after` for one that went. */
export function describeChange(kind: AuditedKind, target: string, before: object | undefined, after: object | undefined): AuditChange {
  if (after === undefined) return { action: 'removed', kind, target, changes: [] };
  const resource = resourceOf(kind);
  const changes = compare(resource, before as Members | undefined, after as Members);
  if (before === undefined) return { action: 'created', kind, target, changes };
  const members = changes.map(({ member }) => member);
  const action = resource.actionOf?.(before as never, after as never, members) ?? 'changed';
  return { action, kind, target, changes };
}

/** Of a client its secret is told apart from its rights, and both from each other's names in the store. */
export function describeClient(before: Client, after: Client, now: Date): AuditChange {
  const { clientId } = after;
  const ofSecret = (action: AuditAction): AuditChange => ({ action, kind: 'client', target: clientId, changes: [{ member: 'secret' }] });
  if (before.secretHash !== after.secretHash) return ofSecret('rotated');
  if (before.pickUp !== null && after.pickUp === null) return ofSecret(before.pickUp.expiresAt <= now ? 'expired' : 'fetched');
  return describeChange('client', clientId, before, after);
}

export function describeNewClient(client: Client): AuditChange {
  const { changes, ...entry } = describeChange('client', client.clientId, undefined, client);
  return { ...entry, changes: [...changes, { member: 'secret' }] };
}

/** Status values of credentials; Token Status List section 7.1. */
const OF_STATUS: Readonly<Record<number, AuditAction>> = { 0: 'restored', 1: 'revoked', 2: 'suspended' };

/** @param changes of the status list entries of the session's credentials, all to the same status. */
export function describeRevocation(
  revocation: {
    readonly sessionId: string;
    readonly credentialConfigurationId?: string | undefined;
    /** In the words of who did it. */
    readonly reason?: string | undefined;
  },
  changes: readonly { readonly status: number }[],
): AuditChange {
  const { sessionId, credentialConfigurationId, reason } = revocation;
  const status = changes[0]?.status ?? 0;
  return {
    action: OF_STATUS[status] ?? 'changed',
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

/** @param list of a wallet provider, with which credentials of these sessions fell. */
export function describeFallenWallets(list: string, credentials: number, sessionIds: readonly string[]): AuditChange {
  const changes = [
    { member: 'status', after: 1 },
    { member: 'credentials', after: credentials },
    { member: 'sessions', after: sessionIds },
  ];
  return { action: 'revoked', kind: 'wallet-status-list', target: list, changes };
}

/** @param list without what its address may keep secret. @param signer fingerprint of somebody who is not pinned. */
export function describeHeldList({
  list,
  ...said
}: {
  readonly list: string;
  readonly reason: string;
  readonly signer?: string;
  readonly until?: string;
}): AuditChange {
  const changes = Object.entries(said).map(([member, after]) => ({ member, after }));
  return { action: 'held', kind: 'followed-trust-list', target: list, changes };
}

/** @param list without what its address may keep secret. */
export function describeConfirmedSigner(list: string, fingerprint: string): AuditChange {
  const changes = [{ member: 'signer', after: fingerprint }];
  return { action: 'confirmed', kind: 'followed-trust-list', target: list, changes };
}

/** @param request PKCS#10 as base64 of its DER. */
export function describeCertificateRequest(keyChainId: string, request: string): AuditChange {
  const changes = [{ member: 'requestSha256', after: hash('sha256', Buffer.from(request, 'base64'), 'base64url') }];
  return { action: 'requested', kind: 'key-chain', target: keyChainId, changes };
}

/** @param id of the registration certificate at the registrar, where that tells one. */
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
  { shown: told = [], toldAs = {}, silent = [] }: Resource<never>,
  before: Members | undefined,
  after: Members,
): ChangedMember[] {
  const passedOver = new Set([...SILENT, ...silent]);
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after)])].sort();
  return names
    .filter((name) => !passedOver.has(name) && canonical(before?.[name]) !== canonical(after[name]))
    .map((member) => {
      const asIs = told.includes(member) ? (value: unknown) => value : undefined;
      const tell = (Object.hasOwn(toldAs, member) ? toldAs[member] : asIs) as typeof asIs;
      if (tell === undefined) return { member };
      const [was, is] = [before?.[member], after[member]].map((value) => value && tell(value));
      return shown(member, was, is);
    });
}

function shown(member: string, before: unknown, after: unknown): ChangedMember {
  const values = Object.entries({ before, after }).filter(
    ([, value]) => value !== undefined && value !== null && canonical(value).length <= MAX_SHOWN,
  );
  return { member, ...(Object.fromEntries(values) as { before?: Json; after?: Json }) };
}

/** Null and absent are alike. */
const canonical = (value: unknown) => canonicalJson(value, (member) => member !== null && member !== undefined);
