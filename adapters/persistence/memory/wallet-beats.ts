import {
  type Beats,
  MAX_ISSUANCES,
  type SessionUse,
  type UsedValue,
} from '../../../application/ports/store.ts';
import type { Grant } from '../../../domain/oauth/grant.ts';
import { OPEN_STATUSES, type Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Pass } from './memory-store.ts';
import { withHead } from './session-beats.ts';
import type { State } from './state.ts';

type WalletBeats = Pick<
  Beats,
  | 'findGrant'
  | 'redeemGrant'
  | 'consumeGrant'
  | 'takeAttempt'
  | 'remember'
  | 'claimCredentialRequest'
  | 'recordIssuance'
  | 'issueAtOnce'
  | 'issuedBatches'
  | 'readIssued'
>;

type Issued = NonNullable<Awaited<ReturnType<Beats['recordIssuance']>>>;

export function walletBeats(state: State, pass: Pass, tenantId: TenantId): WalletBeats {
  const { batches, grants, sessions } = state;
  const use = (used: readonly UsedValue[]) => useValues(state, tenantId, used);
  const isRevoked = (grantId: string | undefined) =>
    grantId !== undefined && (grants.find(tenantId, grantId)?.revokedAt ?? null) !== null;
  const isRedeemable = (grant: Grant, now: Date) => {
    const session = sessions.find(tenantId, grant.sessionId);
    if (session === undefined || grant.consumedAt !== null || grant.expiresAt <= now) return false;
    if (session.status === 'completed') return grant.kind === 'authorization_code';
    return OPEN_STATUSES.includes(session.status) && session.expiresAt > now;
  };
  const isIssuable = ({ id, status }: Session, bit: number) =>
    ((state.bars.find(tenantId, id)?.mask ?? 0) & bit) === 0 &&
    status !== 'expired' &&
    status !== 'failed' &&
    batches.list(tenantId, ({ sessionId }) => sessionId === id).length < MAX_ISSUANCES;
  const useOf = ({ id }: Session): SessionUse => ({
    issued: batches.list(tenantId, ({ sessionId }) => sessionId === id).length,
    deferred: state.deferred.list(tenantId, ({ sessionId }) => sessionId === id).length,
    barred: state.bars.find(tenantId, id)?.mask ?? 0,
  });
  const batchesOf = (sessionId: string) =>
    batches
      .list(tenantId, (batch) => batch.sessionId === sessionId)
      .sort((a, b) => a.issuedAt.getTime() - b.issuedAt.getTime() || (a.id < b.id ? -1 : 1));
  const issue: (...parameters: Parameters<Beats['recordIssuance']>) => Issued | undefined = (
    sessionId,
    batch,
    bit,
    completeMask,
    now,
  ) => {
    const session = sessions.find(tenantId, sessionId);
    if (session === undefined || !isIssuable(session, bit)) return undefined;
    const issuedMask = session.issuedMask | bit;
    const changed = session.status !== 'completed' && issuedMask === completeMask;
    const issued: Session = { ...session, issuedMask, updatedAt: now };
    const next: Session = changed ? { ...issued, status: 'completed', version: session.version + 1 } : issued;
    state.saveSession(next);
    batches.put(tenantId, `${sessionId} ${batch.id}`, { ...batch, sessionId });
    if (changed) state.log(next, now);
    return { status: next.status, version: next.version, changed };
  };

  return {
    findGrant: (codeHash) =>
      pass(() => {
        const head = state.head(tenantId);
        if (head === undefined) return undefined;
        const [grant] = grants.list(tenantId, (candidate) => candidate.codeHash === codeHash);
        return { head, grant };
      }),
    redeemGrant: (codeHash, { holder, until }, used, now) =>
      pass(() => {
        const head = state.head(tenantId);
        const [grant] = grants.list(tenantId, (candidate) => candidate.codeHash === codeHash);
        if (head?.status !== 'active' || grant?.kind !== 'pre_authorized_code') return undefined;
        if (grant.txCodeHash !== null || !isRedeemable(grant, now)) return undefined;
        const known = use(used);
        if (known !== undefined) return known;
        const consumed = { ...grant, consumedAt: now, holder, expiresAt: until };
        grants.put(tenantId, grant.id, consumed);
        return { head, grant: consumed };
      }),
    consumeGrant: (grantId, { holder, until }, used, now) =>
      pass(() => {
        const known = use(used);
        if (known !== undefined) return known;
        const grant = grants.find(tenantId, grantId);
        if (grant === undefined || !isRedeemable(grant, now)) return 'spent';
        grants.put(tenantId, grantId, { ...grant, consumedAt: now, holder, expiresAt: until });
        return 'consumed';
      }),
    takeAttempt: (grantId, maximum) =>
      pass(() => {
        const grant = grants.find(tenantId, grantId);
        if (grant === undefined || grant.consumedAt !== null || grant.attempts >= maximum) return false;
        grants.put(tenantId, grantId, { ...grant, attempts: grant.attempts + 1 });
        return true;
      }),
    remember: (used) => pass(() => use(used) === undefined),
    claimCredentialRequest: (publicId, used, grantId) =>
      pass(() => {
        const found = withHead(state, tenantId, publicId);
        if (found === undefined) return undefined;
        const replayed = use(used);
        const answer = { ...found, revoked: isRevoked(grantId) };
        if (replayed !== undefined) return { ...answer, replayed };
        return found.session === undefined ? answer : { ...answer, use: useOf(found.session) };
      }),
    recordIssuance: (sessionId, batch, bit, completeMask, now) =>
      pass(() => issue(sessionId, batch, bit, completeMask, now)),
    issueAtOnce: ({ sessionId, grantId, revision, used, batch, bit, completeMask }, now) =>
      pass(() => {
        const head = state.head(tenantId);
        const session = sessions.find(tenantId, sessionId);
        if (head?.status !== 'active' || head.revision !== revision) return undefined;
        if (session === undefined || session.expiresAt <= now || !isIssuable(session, bit)) return undefined;
        if (isRevoked(grantId)) return undefined;
        const known = use(used);
        if (known !== undefined) return known;
        const issued = issue(sessionId, batch, bit, completeMask, now);
        return issued && { status: issued.status, changed: issued.changed };
      }),
    readIssued: (sessionId) =>
      pass(() => {
        const head = state.head(tenantId);
        const configurationIds = sessions.find(tenantId, sessionId)?.configurationIds;
        return head === undefined ? undefined : { head, configurationIds, batches: batchesOf(sessionId) };
      }),
    issuedBatches: (sessionId) => pass(() => batchesOf(sessionId)),
  };
}

/** @returns the kind that was known already; then nothing is remembered. */
export function useValues(
  { usedValues }: State,
  tenantId: TenantId,
  used: readonly UsedValue[],
): UsedValue['kind'] | undefined {
  const placeOf = ({ kind, hash }: UsedValue) => `${kind} ${hash}`;
  const places = used.map(placeOf);
  const known = used.find((value, index) => {
    const place = placeOf(value);
    return usedValues.has(tenantId, place) || places.indexOf(place) !== index;
  });
  if (known === undefined) for (const value of used) usedValues.put(tenantId, placeOf(value), value);
  return known?.kind;
}
