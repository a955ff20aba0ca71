import type { DeferredQuery, SessionQuery, Store } from '../../../application/ports/store.ts';
import type { TenantActor } from '../../../domain/audit/audit-entry.ts';
import {
  describeDeferred,
  describeRevocation,
  describeSessionRemoval,
} from '../../../domain/audit/describe-change.ts';
import type { Change, Committed } from '../../../domain/changes/change.ts';
import type { DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import { type NewGrant, type Redemption, redeemable } from '../../../domain/oauth/grant.ts';
import type { UsedValue } from '../../../domain/oauth/used-value.ts';
import {
  ISSUING_STATUSES,
  MAX_ISSUANCES,
  MOVES,
  SESSION_STATUSES,
  type Session,
  type SessionOutcome,
} from '../../../domain/sessions/session.ts';
import { answered, delivering, noted, type SessionChange } from '../../../domain/sessions/session-change.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch, StatusChange, StatusList } from '../../../domain/status-lists/status-list.ts';
import type { Revisions } from '../../../domain/tenants/revisions.ts';
import type { SeenRelease } from '../../../domain/trust-lists/freshness.ts';
import { fetched } from '../../support/fetched.ts';
import { NOW } from './builders.ts';

export type Revocation = {
  readonly by: TenantActor;
  readonly sessionId: SessionId;
  readonly credentialConfigurationId?: string | undefined;
  readonly mask: number;
  readonly barred: boolean;
  readonly issuedCount: number;
};

/** What the steps of a wallet and a backend are to the store: the changes that the use cases decide, with plain answers. */
export function stepsOf(store: Store, tenantId: TenantId) {
  const reads = store.read(tenantId);
  const commit = (change: Change, now: Date) => store.commit(tenantId, change, now);
  const done = async (change: Change, now: Date) => (await commit(change, now)).done;
  const issuing = (id: SessionId, bit: number): SessionChange => ({
    id,
    anytime: ISSUING_STATUSES,
    unbarred: bit,
    issuedBelow: MAX_ISSUANCES,
  });
  /** What somebody assumes who knows this revision of the tenant. */
  const assuming = async (revision: number | undefined): Promise<{ revisions?: Revisions }> => {
    const state = await reads.state();
    if (revision === undefined || state === undefined) return {};
    const all = state.revisions.all + revision - state.revision;
    return { revisions: { ...state.revisions, all } };
  };
  const grantBy = async (id: string) => (await reads.grant(id))?.grant;
  return {
    ...reads,
    ...store.lists(tenantId),
    openSession: async (session: Session, grant?: NewGrant, revision?: number) =>
      done(
        {
          serving: true,
          ...(await assuming(revision)),
          opens: { session, ...(grant !== undefined && { grant }) },
        },
        session.createdAt,
      ),
    findSession: async (id: SessionId) => (await reads.session(id))?.session,
    listSessions: (query: SessionQuery) => reads.sessions(query),
    removeSession: (id: SessionId, by: TenantActor) =>
      done({ removes: id, audit: { by, change: describeSessionRemoval(id) } }, NOW),
    async fetchSession(publicId: PublicId, now: Date) {
      const before = await reads.sessionByPublicId(publicId);
      if (before?.session === undefined) return before && { ...before, changed: false };
      const changed = await done({ serving: true, session: fetched(before.session) }, now);
      const after = await reads.sessionByPublicId(publicId);
      return after && { ...after, changed };
    },
    async consumeGrant(id: string, redemption: Redemption, uses: readonly UsedValue[], now: Date) {
      const grant = await grantBy(id);
      if (grant === undefined) return 'spent';
      const change = { grant: { id, act: 'redeem', redemption }, session: redeemable(grant), uses } as const;
      return wordOf(await commit(change, now), 'consumed', 'spent');
    },
    /** A pre-authorized code that needs no transaction code. */
    async redeemGrant(codeHash: string, redemption: Redemption, uses: readonly UsedValue[], now: Date) {
      const found = await reads.grantByCode(codeHash);
      const grant = found?.grant;
      if (grant === undefined || grant.kind !== 'pre_authorized_code' || grant.txCodeHash !== null)
        return undefined;
      const change = {
        grant: { id: grant.id, act: 'redeem', redemption },
        session: redeemable(grant),
      } as const;
      const committed = await commit({ serving: true, ...change, uses }, now);
      return wordOf(committed, { tenant: found?.tenant, grant }, undefined);
    },
    takeAttempt: (id: string, attemptsBelow: number) =>
      done({ grant: { id, act: 'attempt', attemptsBelow } }, NOW),
    remember: (uses: readonly UsedValue[]) => done({ uses }, NOW),
    async claimCredentialRequest(publicId: PublicId, uses: readonly UsedValue[], grantId?: string) {
      const claim = { uses, ...(grantId !== undefined && { unrevoked: grantId }) };
      const committed = await commit(claim, NOW);
      const read = await reads.sessionByPublicId(publicId);
      if (read === undefined) return undefined;
      const replayed = !committed.done && committed.part === 'uses' ? committed.kind : undefined;
      const revoked = !committed.done && committed.part === 'unrevoked';
      return { ...read, revoked, ...(replayed !== undefined && { replayed }) };
    },
    async recordIssuance(id: SessionId, batch: IssuedBatch, bit: number, all: number, now: Date) {
      const session = {
        ...issuing(id, bit),
        counts: true,
        sets: { bit, all, last: MOVES.complete },
      } as const;
      const committed = await commit({ session, issued: batch }, now);
      if (!committed.done || committed.session === undefined) return undefined;
      const { moved: changed, ...rest } = committed.session;
      return { ...rest, changed };
    },
    async issueAtOnce(
      issuance: {
        readonly sessionId: SessionId;
        readonly grantId?: string | undefined;
        readonly revision?: number;
        readonly used: readonly UsedValue[];
        readonly batch: IssuedBatch;
        readonly bit: number;
        readonly completeMask: number;
      },
      now: Date,
    ) {
      const { sessionId, grantId, revision, used, batch, bit, completeMask } = issuance;
      const { anytime = [], ...rest } = issuing(sessionId, bit);
      const sets = { bit, all: completeMask, last: MOVES.complete };
      const change = {
        serving: true as const,
        ...(await assuming(revision)),
        ...(grantId !== undefined && { unrevoked: grantId }),
        uses: used,
        session: { ...rest, running: anytime, counts: true as const, sets },
        issued: batch,
      };
      const committed = await commit(change, now);
      if (!committed.done) return committed.part === 'uses' ? committed.kind : undefined;
      return { status: committed.session?.status, changed: committed.session?.moved };
    },
    issuedBatches: async (id: SessionId) => (await reads.issued(id))?.batches ?? [],
    answerAtOnce: async (
      answer: {
        readonly sessionId: SessionId;
        readonly revision?: number;
        readonly event: 'complete' | 'fail';
        readonly outcome: SessionOutcome;
      },
      now: Date,
    ) => {
      const { sessionId: id, revision, event, outcome } = answer;
      const session = answered({ id }, event, outcome);
      return done({ serving: true, ...(await assuming(revision)), session }, now);
    },
    claimResponse: (id: SessionId, now: Date) => done({ session: delivering({ id }, { report: [] }) }, now),
    async recordOutcome(
      session: Session,
      event: 'complete' | 'fail' | undefined,
      outcome: SessionOutcome,
      now: Date,
    ) {
      const from: readonly string[] = event === undefined ? SESSION_STATUSES : MOVES[event].from;
      if (!from.includes(session.status)) return undefined;
      const committed = await commit({ session: noted(session, outcome, event) }, now);
      return committed.done ? committed.session?.version : undefined;
    },
    changeStatuses(statuses: readonly StatusChange[], now: Date, revocation?: Revocation) {
      if (revocation === undefined) return done({ statuses }, now);
      const { by, sessionId, mask, barred, issuedCount } = revocation;
      const session = {
        id: sessionId,
        anytime: SESSION_STATUSES,
        issuedExactly: issuedCount,
        bars: { mask, barred },
      };
      const audit = { by, change: describeRevocation(revocation, statuses) };
      return done({ session, statuses, audit }, now);
    },
    async openAuthorization(authorization: Authorization, uses: readonly UsedValue[]) {
      return wordOf(
        await commit({ serving: true, opens: { authorization }, uses }, NOW),
        'opened',
        undefined,
      );
    },
    async advanceAuthorization(authorization: Authorization, uses: readonly UsedValue[]) {
      return wordOf(await commit({ authorization, uses }, NOW), 'advanced', 'stale');
    },
    grantAuthorization: (
      authorization: Authorization,
      grant: NewGrant,
      session?: Session,
      uses: readonly UsedValue[] = [],
    ) =>
      done(
        {
          authorization,
          uses,
          opens: { grant, ...(session !== undefined && { session }) },
          ...(session === undefined
            ? { session: { id: grant.sessionId, anytime: ISSUING_STATUSES } }
            : { serving: true as const }),
        },
        NOW,
      ),
    async refreshGrant(id: string, generation: number, uses: readonly UsedValue[], now: Date) {
      return wordOf(
        await commit({ grant: { id, act: 'refresh', generation }, uses }, now),
        'refreshed',
        'stale',
      );
    },
    revokeGrant: (id: string, now: Date) => done({ grant: { id, act: 'revoke' } }, now),
    linkSubject: (hash: string, sessionId: SessionId) => done({ subject: { hash, sessionId } }, NOW),
    openDeferred: (transaction: DeferredTransaction, bit: number) =>
      done(
        {
          session: {
            ...issuing(transaction.sessionId, bit),
            deferredBelow: MAX_ISSUANCES,
            lastsUntil: transaction.expiresAt,
          },
          opens: { deferred: transaction },
        },
        NOW,
      ),
    listDeferred: (query: DeferredQuery) => reads.deferredTransactions(query),
    completeDeferred: (
      id: string,
      credentials: readonly string[],
      batch: IssuedBatch,
      bit: number,
      now: Date,
      by: TenantActor,
    ) =>
      done(
        {
          deferred: { id, act: 'complete', credentials, batchId: batch.id },
          session: { ...issuing(batch.sessionId, bit), counts: true },
          issued: batch,
          audit: { by, change: describeDeferred(id, 'completed') },
        },
        now,
      ),
    failDeferred: (id: string, errorMessage: string, now: Date, by: TenantActor | null) =>
      done(
        {
          deferred: { id, act: 'fail', errorMessage },
          ...(by !== null && { audit: { by, change: describeDeferred(id, 'failed') } }),
        },
        now,
      ),
    async retrieveDeferred(
      id: string,
      publicId: PublicId,
      bit: number,
      all: number,
      reason: string,
      now: Date,
    ) {
      const transaction = await reads.deferred(id);
      if (transaction?.publicId !== publicId) return undefined;
      const sets = { bit, all, last: MOVES.complete };
      const session = { id: transaction.sessionId, anytime: ISSUING_STATUSES, unbarred: bit, sets };
      const committed = await commit({ deferred: { id, act: 'retrieve' }, session }, now);
      if (committed.done) return { transaction, completed: committed.session?.moved };
      if (committed.part !== 'session') return undefined;
      return (await done({ deferred: { id, act: 'refuse', errorMessage: reason } }, now))
        ? 'refused'
        : undefined;
    },
    noteRelease: (id: string, release: SeenRelease, now: Date) =>
      store.lists(tenantId).noteRelease(id, release, now),
    takeStatusRun: (list: Pick<StatusList, 'id' | 'keyChainId'>, count: number) =>
      store.lists(tenantId).takeStatusRun(list, count),
  };
}

/** @returns `good`, the kind of a value that was used before, or `bad`. */
function wordOf<Good, Bad>(committed: Committed, good: Good, bad: Bad): Good | Bad | UsedValue['kind'] {
  if (committed.done) return good;
  return committed.part === 'uses' ? committed.kind : bad;
}
