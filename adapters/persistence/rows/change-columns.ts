import type { Cipher } from '../../../application/ports/cipher.ts';
import {
  DEFERRED_MOVES,
  type DeferredChange,
  type DeferredTransaction,
} from '../../../domain/issuance/deferred.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import { GRANT_ACTS, type GrantChange, type NewGrant } from '../../../domain/oauth/grant.ts';
import { inOrder, type UsedValue } from '../../../domain/oauth/used-value.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import type { SessionChange } from '../../../domain/sessions/session-change.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch, StatusChange } from '../../../domain/status-lists/status-list.ts';
import type { Field } from '../postgres/row-literal.ts';
import {
  authorizationParameters,
  deferredParameters,
  sealCredentials,
  sealErrorMessage,
} from './authorization-codec.ts';
import { grantParameters, sealOutcome, sealRequest } from './session-codec.ts';

/**
 * The parts of a change as columns, without the tenant, which always comes first. PostgreSQL takes each as a composite
 * value of the type of the same name, SQLite as parameters of its statements.
 */
export type Columns = readonly Field[];

const time = (date: Date | null | undefined) => date?.getTime() ?? null;

export function usedValueColumns(uses: readonly UsedValue[]): readonly Columns[] {
  return inOrder(uses).map(({ kind, hash, expiresAt }) => [kind, hash, expiresAt.getTime()]);
}

export function newSessionColumns(cipher: Cipher, session: Session): Columns {
  return [
    session.id,
    session.publicId,
    session.kind,
    session.status,
    session.version,
    session.createdAt.getTime(),
    session.updatedAt.getTime(),
    session.expiresAt.getTime(),
    JSON.stringify(session.configurationIds),
    session.useDcApi,
    sealRequest(cipher, session),
    sealOutcome(cipher, session.tenantId, session.id, session.outcome),
    session.issuedMask,
    time(session.claimedAt),
  ];
}

export function newGrantColumns(cipher: Cipher, tenantId: TenantId, grant: NewGrant): Columns {
  return grantParameters(cipher, tenantId, grant);
}

/** Also of one that has moved on. */
export function authorizationColumns(
  cipher: Cipher,
  tenantId: TenantId,
  authorization: Authorization,
): Columns {
  return authorizationParameters(cipher, tenantId, authorization);
}

export function newDeferredColumns(transaction: DeferredTransaction): Columns {
  return deferredParameters(transaction);
}

/** `session_change`: what is expected comes first, what becomes of it second. */
export function sessionChangeColumns(cipher: Cipher, tenantId: TenantId, change: SessionChange): Columns {
  const { id, outcome, sets, bars, to } = change;
  const touches = to !== undefined || outcome !== undefined || sets !== undefined;
  const writes =
    touches ||
    bars !== undefined ||
    change.answers === true ||
    change.counts === true ||
    change.lastsUntil !== undefined;
  return [
    id,
    writes,
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
    outcome === undefined ? null : sealOutcome(cipher, tenantId, id, outcome),
    change.counts ? 1 : 0,
    sets?.bit ?? 0,
    sets?.all ?? null,
    sets?.last.from ?? null,
    sets?.last.to ?? null,
    bars?.barred === true ? bars.mask : 0,
    bars?.barred === false ? bars.mask : 0,
    time(change.lastsUntil),
    touches,
    to !== undefined || outcome !== undefined ? 1 : 0,
  ];
}

export function grantChangeColumns(change: GrantChange): Columns {
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
    time(redemption?.until),
    change.act === 'attempt' ? 1 : 0,
    change.act === 'refresh' ? 1 : 0,
    change.act === 'revoke',
  ];
}

export function deferredChangeColumns(cipher: Cipher, tenantId: TenantId, change: DeferredChange): Columns {
  const { id, act } = change;
  const { from, to } = DEFERRED_MOVES[act];
  return [
    id,
    from,
    to,
    act === 'complete' ? sealCredentials(cipher, tenantId, id, change.credentials) : null,
    act === 'complete' ? change.batchId : null,
    'errorMessage' in change ? sealErrorMessage(cipher, tenantId, id, change.errorMessage) : null,
  ];
}

export function issuedColumns(batch: IssuedBatch): Columns {
  return [
    batch.sessionId,
    batch.id,
    batch.credentialConfigurationId,
    batch.count,
    batch.statusListId,
    batch.firstCounter,
    batch.issuedAt.getTime(),
  ];
}

/** The last word about each entry counts. */
export function statusColumns(changes: readonly StatusChange[]): readonly Columns[] {
  const last = new Map(changes.map((change) => [`${change.listId} ${change.index}`, change]));
  return Array.from(last.values(), ({ listId, index, status }) => [listId, index, status]);
}
