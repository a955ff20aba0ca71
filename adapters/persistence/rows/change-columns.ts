import type { Cipher } from '../../../application/ports/cipher.ts';
import type { Change } from '../../../domain/changes/change.ts';
import { DEFERRED_MOVES, type DeferredChange } from '../../../domain/issuance/deferred.ts';
import { sortConsumedValues } from '../../../domain/oauth/consumed-value.ts';
import { GRANT_ACTS, type GrantChange } from '../../../domain/oauth/grant.ts';
import type { SessionChange } from '../../../domain/sessions/session-change.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { StatusChange } from '../../../domain/status-lists/status-list.ts';
import { authorizationFields, DEFERRED } from './authorization-codec.ts';
import type { Fields } from './columns.ts';
import { GRANTS, ISSUED_BATCHES, SESSIONS } from './session-codec.ts';

/**
 * Converts the parts of a change to fields. PostgreSQL takes each as a composite value of the type of the same name, SQLite as parameters
 * of its statements. They are in the order of the bits that tell `commit_change_1` which parts are present.
 */
export function partsOf(cipher: Cipher, tenantId: TenantId, change: Change) {
  const { grant, session, authorization, deferred, opens, issued, subject } = change;
  return {
    grant: grant && grantChange(grant),
    session: session && sessionChange(cipher, tenantId, session),
    authorization: authorization && authorizationFields(cipher, tenantId, authorization),
    deferred: deferred && deferredChange(cipher, tenantId, deferred),
    unrevoked: change.unrevoked,
    removes: change.removes,
    uses: unlessEmpty(change.uses, (uses) =>
      sortConsumedValues(uses).map(({ kind, hash, expiresAt }) => [kind, hash, expiresAt.getTime()] as const),
    ),
    newSession: opens?.session && SESSIONS.write(cipher, tenantId, opens.session),
    newGrant: opens?.grant && GRANTS.write(cipher, tenantId, opens.grant),
    newAuthorization: opens?.authorization && authorizationFields(cipher, tenantId, opens.authorization),
    newDeferred: opens?.deferred && DEFERRED.write(cipher, tenantId, opens.deferred),
    issued: issued && ISSUED_BATCHES.write(cipher, tenantId, issued),
    subject: subject && [subject.hash, subject.sessionId],
    statuses: unlessEmpty(change.statuses, statusChanges),
    audit: change.audit,
  };
}
export type Parts = ReturnType<typeof partsOf>;

const unlessEmpty = <T, R>(items: readonly T[] = [], rowsOf: (all: readonly T[]) => R) => (items.length === 0 ? undefined : rowsOf(items));
const timestampOf = (date: Date | null | undefined) => date?.getTime() ?? null;

/**
 * Values of `writes` in `session_change`. The most frequent write changes only the status and the data of a response; it has a statement of
 * its own, which is a quarter cheaper.
 */
export const NO_WRITE = 0;
const STATUS_WRITE = 1;
const ANY_WRITE = 2;

/** Properties of a change with `STATUS_WRITE`. */
const STATUS_WRITE_PROPERTIES: ReadonlySet<string> = new Set<keyof SessionChange>([
  ...(['id', 'running', 'anytime', 'version', 'unanswered'] as const),
  ...(['to', 'answers', 'outcome', 'delivery', 'erasesRequest'] as const),
]);

/** Returns true if the change writes only the status and the data of a response, and has no expectations about other columns. */
function isStatusWrite(change: SessionChange): boolean {
  return change.to !== undefined && Object.keys(change).every((property) => STATUS_WRITE_PROPERTIES.has(property));
}

/** Index of the outcome in `session_change`, and of the credentials in `deferred_change`. Their lengths depend on the request. */
export const CHANGED_OUTCOME = 12;
export const CHANGED_CREDENTIALS = 3;

/** Returns the fields of the type `session_change`: first the expectations, then the new values. */
function sessionChange(cipher: Cipher, tenantId: TenantId, change: SessionChange): Fields {
  const { id, outcome, sets, bars, to } = change;
  const expiresAt = change.endsAt ?? change.lastsUntil;
  const touchesUpdatedAt = to !== undefined || outcome !== undefined || sets !== undefined;
  const counts = change.counts === true;
  const hasWrites = touchesUpdatedAt || bars !== undefined || change.answers === true || counts || expiresAt !== undefined;
  return [
    id,
    hasWrites ? (isStatusWrite(change) ? STATUS_WRITE : ANY_WRITE) : NO_WRITE,
    change.running ?? null,
    change.anytime ?? null,
    change.version ?? null,
    change.unanswered ?? false,
    change.unbarred ?? 0,
    change.issuedBelow ?? null,
    change.deferredBelow ?? null,
    change.issuedExactly ?? null,
    to ?? null,
    change.answers ?? false,
    outcome === undefined ? null : SESSIONS.field('outcome', outcome, { cipher, tenantId, id }),
    counts ? 1 : 0,
    sets?.bit ?? 0,
    sets?.all ?? null,
    sets?.last.from ?? null,
    sets?.last.to ?? null,
    bars?.barred === true ? bars.mask : 0,
    bars?.barred === false ? bars.mask : 0,
    timestampOf(expiresAt),
    touchesUpdatedAt,
    to !== undefined || outcome !== undefined ? 1 : 0,
  ];
}

function grantChange(change: GrantChange): Fields {
  const { consumed, unexpired, unrevoked } = GRANT_ACTS[change.act];
  const redemption = change.act === 'redeem' ? change.redemption : undefined;
  return [
    change.id,
    consumed ?? null,
    unexpired,
    unrevoked,
    ('attemptsBelow' in change ? change.attemptsBelow : undefined) ?? null,
    change.act === 'refresh' ? change.generation : null,
    redemption !== undefined,
    redemption === undefined ? null : JSON.stringify(redemption.holder),
    timestampOf(redemption?.until),
    change.act === 'attempt' ? 1 : 0,
    change.act === 'refresh' ? 1 : 0,
    change.act === 'revoke',
  ];
}

function deferredChange(cipher: Cipher, tenantId: TenantId, change: DeferredChange): Fields {
  const { id, act } = change;
  const { from, to } = DEFERRED_MOVES[act];
  const location = { cipher, tenantId, id };
  return [
    id,
    from,
    to,
    act === 'complete' ? DEFERRED.field('credentials', change.credentials, location) : null,
    act === 'complete' ? change.batchId : null,
    'errorMessage' in change ? DEFERRED.field('errorMessage', change.errorMessage, location) : null,
  ];
}

/** The last change of each entry wins. */
function statusChanges(changes: readonly StatusChange[]) {
  const lastChanges = new Map(changes.map((change) => [`${change.listId} ${change.index}`, change]));
  return Array.from(lastChanges.values(), ({ listId, index, status }) => [listId, index, status] as const);
}
