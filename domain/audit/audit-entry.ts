import { type AuditedKind, RESOURCES } from '../resources.ts';
import type { TenantId } from '../shared/ids.ts';
import type { Json } from '../shared/json.ts';

/** Name under which the service itself stands in the log. */
export const SYSTEM = 'system';

type ClientActor<Tenant> = {
  readonly clientId: string;
  /** Who called by the client, where an external provider names a person. */
  readonly person?: string;
  readonly tenantId: Tenant;
  /** `X-Request-Id` of the call, so that the log of the service can be held against this one. */
  readonly requestId?: string;
};

/** Who changes something that only a tenant's own clients can, or the service by itself. */
export type TenantActor = typeof SYSTEM | ClientActor<TenantId>;

/** Who changes something: a client, as it called, also one that manages tenants; or the service by itself. */
export type Actor = TenantActor | ClientActor<null>;

export type AuditKind = AuditedKind | (typeof OTHER_KINDS)[number];
const OTHER_KINDS = ['session', 'deferred-transaction', 'wallet-status-list', 'followed-trust-list', 'cache', 'audit-log'] as const;
export const AUDIT_KINDS: readonly AuditKind[] = [
  ...RESOURCES.flatMap((resource) => ('shown' in resource ? [resource.kind] : [])),
  ...OTHER_KINDS,
];

export const AUDIT_ACTIONS = [
  'created',
  'changed',
  'removed',
  /** A key chain got another key, a client another secret. */
  'rotated',
  /** A certificate for a key was requested; the request is signed by the key. */
  'requested',
  /** A trust list was signed anew as it was. */
  'renewed',
  /** A client's new secret was handed over, or came too late to be. */
  'fetched',
  'expired',
  /** Credentials of a session. */
  'revoked',
  'suspended',
  'restored',
  /** A session, and a delivery to its webhook. */
  'cancelled',
  'retried',
  /** Values of persons in a session were read. */
  'shown',
  /** A deferred transaction. */
  'completed',
  'failed',
  /** A release of a list of others that takes the place of nothing until somebody decides; and who signs it from now on. */
  'held',
  'confirmed',
  /** Copies of lists of others. */
  'cleared',
  /** The log itself: its first entry, with what was there before. */
  'begun',
  /** The log itself: the database was put back, and nothing from before counts any more. */
  'fenced',
  /** The log itself: its oldest entries, which were older than they are kept. */
  'pruned',
  /** The log itself: somebody else than the service wrote to it. */
  'broken',
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** A member that changed; its values only where everybody who reads the log may know them. */
export type ChangedMember = { readonly member: string; readonly before?: Json; readonly after?: Json };

/** What happened to what. */
export type AuditChange = {
  readonly action: AuditAction;
  readonly kind: AuditKind;
  /** Id of the thing within its tenant. */
  readonly target: string;
  readonly changes: readonly ChangedMember[];
};

/** An entry of a tenant's chain that one of the service's chain repeats, and so keeps. */
export type EntryReference = { readonly tenantId: string; readonly sequence: number; readonly hash: string };

/** What an entry says beyond its columns. */
export type AuditDetail = { readonly changes: readonly ChangedMember[]; readonly requestId?: string; readonly of?: EntryReference };

/** A link of a chain, as it is stored. */
export type AuditEntry = Omit<AuditChange, 'changes'> & {
  /** From 1, without gaps, in each chain. */
  readonly sequence: number;
  readonly at: Date;
  readonly actor: string;
  /** `AuditDetail` as JSON, letter by letter as the hash covers it. */
  readonly detail: string;
  readonly hash: string;
};

/** The chain of what belongs to no tenant; no tenant has this id. */
export const SERVICE_SCOPE = '';

/** Ids of clients can come from elsewhere; one that reads like the service is told apart from it. */
export function nameOf(actor: Actor): string {
  if (actor === SYSTEM) return SYSTEM;
  const { clientId, person } = actor;
  const client = clientId === SYSTEM || clientId.startsWith('client ') ? `client ${clientId}` : clientId;
  return person === undefined ? client : `${client} (${person})`;
}

export function detailOf({ detail }: Pick<AuditEntry, 'detail'>): AuditDetail {
  return JSON.parse(detail) as AuditDetail;
}
