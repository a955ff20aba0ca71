import { type AuditedKind, RESOURCES } from '../resources.ts';
import type { TenantId } from '../shared/ids.ts';
import type { Json } from '../shared/json.ts';

/** Name of the service itself in the log. */
export const SYSTEM = 'system';

type ClientActor<Tenant> = {
  readonly clientId: string;
  /** The person behind the client, if an external provider states one. */
  readonly person?: string;
  readonly tenantId: Tenant;
  /** `X-Request-Id` of the call, for correlation with the service's log. */
  readonly requestId?: string;
};

/** The actor of a change that only a tenant's clients, or the service itself, can make. */
export type TenantActor = typeof SYSTEM | ClientActor<TenantId>;

/** The actor of a change: a client, including those that manage tenants, or the service itself. */
export type Actor = TenantActor | ClientActor<null>;

export type AuditKind = AuditedKind | (typeof OTHER_KINDS)[number];
const OTHER_KINDS = ['session', 'deferred-transaction', 'wallet-status-list', 'followed-trust-list', 'cache', 'audit-log'] as const;
export const AUDIT_KINDS: readonly AuditKind[] = [
  ...RESOURCES.flatMap((resource) => ('auditedValues' in resource ? [resource.kind] : [])),
  ...OTHER_KINDS,
];

export const AUDIT_ACTIONS = [
  'created',
  'changed',
  'removed',
  /** A key chain got a new key, a client a new secret. */
  'rotated',
  /** A certificate for a key was requested; the request is signed by the key. */
  'requested',
  /** A trust list was signed again without changes. */
  'renewed',
  /** A client's new secret was fetched, or its pick-up expired. */
  'fetched',
  'expired',
  /** Credentials of a session. */
  'revoked',
  'suspended',
  'restored',
  /** A session, and a delivery to its webhook. */
  'cancelled',
  'retried',
  /** Personal data of a session were read. */
  'shown',
  /** A deferred transaction. */
  'completed',
  'failed',
  /** A version of an external list was not accepted until an administrator decides; and the confirmation of its signer. */
  'held',
  'confirmed',
  /** Cached copies of external lists. */
  'cleared',
  /** The log itself: its first entry, with the existing data. */
  'begun',
  /** The log itself: after a rollback of the database, earlier values became invalid. */
  'fenced',
  /** The log itself: its oldest entries were deleted after their retention period. */
  'pruned',
  /** The log itself: an entry was manipulated. */
  'broken',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** A changed property, with its values if every reader of the log may see them. */
export type ChangedMember = { readonly member: string; readonly before?: Json; readonly after?: Json };

export type AuditChange = {
  readonly action: AuditAction;
  readonly kind: AuditKind;
  /** Id of the object within its tenant. */
  readonly target: string;
  readonly changes: readonly ChangedMember[];
};

/** An entry of a tenant's chain that an entry of the service's chain repeats, which preserves it. */
export type EntryReference = { readonly tenantId: string; readonly sequence: number; readonly hash: string };

/** Data of an entry outside of its columns. */
export type AuditDetail = { readonly changes: readonly ChangedMember[]; readonly requestId?: string; readonly of?: EntryReference };

/** A stored link of a chain. */
export type AuditEntry = Omit<AuditChange, 'changes'> & {
  /** Starts at 1, without gaps, in each chain. */
  readonly sequence: number;
  readonly at: Date;
  readonly actor: string;
  /** `AuditDetail` as JSON, exactly as covered by the hash. */
  readonly detail: string;
  readonly hash: string;
};

/** The chain of changes outside of tenants; no tenant has this id. */
export const SERVICE_SCOPE = '';

/** Client ids may be external; an id that looks like the service's name is prefixed. */
export function nameOf(actor: Actor): string {
  if (actor === SYSTEM) return SYSTEM;
  const { clientId, person } = actor;
  const client = clientId === SYSTEM || clientId.startsWith('client ') ? `client ${clientId}` : clientId;
  return person === undefined ? client : `${client} (${person})`;
}

export function detailOf({ detail }: Pick<AuditEntry, 'detail'>): AuditDetail {
  return JSON.parse(detail) as AuditDetail;
}
