import type { Store } from '../../../application/ports/store.ts';
import type { TenantActor } from '../../../domain/audit/audit-entry.ts';
import { describeDeferred, describeRevocation, describeSessionRemoval } from '../../../domain/audit/describe-change.ts';
import type { Change } from '../../../domain/changes/change.ts';
import type { DeferredTransaction } from '../../../domain/issuance/deferred.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import type { ConsumedValue } from '../../../domain/oauth/consumed-value.ts';
import { type NewGrant, type Redemption, redeemableSession } from '../../../domain/oauth/grant.ts';
import {
  ISSUING_STATUSES,
  MAX_ISSUANCES,
  MOVES,
  SESSION_STATUSES,
  type Session,
  type SessionOutcome,
} from '../../../domain/sessions/session.ts';
import { acceptAndEnd, acceptForDelivery, type SessionChange, updateOutcome } from '../../../domain/sessions/session-change.ts';
import type { PublicId, SessionId, TenantId } from '../../../domain/shared/ids.ts';
import type { IssuedBatch, StatusChange } from '../../../domain/status-lists/status-list.ts';
import type { Revisions } from '../../../domain/tenants/revisions.ts';
import { fetchedChange } from '../../support/fetched.ts';
import { NOW } from './builders.ts';

export type Revocation = {
  readonly by: TenantActor;
  readonly sessionId: SessionId;
  readonly credentialConfigurationId?: string | undefined;
  readonly mask: number;
  readonly barred: boolean;
  readonly issuedCount: number;
};

const issuing = (id: SessionId, bit: number): SessionChange => ({
  id,
  anytime: ISSUING_STATUSES,
  unbarred: bit,
  issuedBelow: MAX_ISSUANCES,
});

/** Opens a session, with the grant of its offer. */
export const sessionOpening = (session: Session, grant?: NewGrant): Change => ({
  serving: true,
  opens: { session, ...(grant !== undefined && { grant }) },
});

export const sessionRemoval = (id: SessionId, by: TenantActor): Change => ({
  removes: id,
  audit: { by, change: describeSessionRemoval(id) },
});

/** Redeems a grant at the token endpoint. */
export const grantRedemption = (
  grant: Pick<NewGrant, 'id' | 'sessionId' | 'kind'>,
  redeemed: Redemption,
  uses: readonly ConsumedValue[],
): Change => ({ grant: { id: grant.id, act: 'redeem', redemption: redeemed }, session: redeemableSession(grant), uses });

/** Records a batch for the configuration of `bit`; `all` are the bits of the session. */
export const batchIssuance = (id: SessionId, batch: IssuedBatch, bit: number, all: number): Change => ({
  session: { ...issuing(id, bit), counts: true, sets: { bit, all, last: MOVES.complete } },
  issued: batch,
});

/** Claims the session for the response that a wallet delivers. */
export const responseDelivery = (id: SessionId): Change => ({ session: acceptForDelivery({ id }, { report: [] }) });

/** Changes statuses of what a session issued, for the audit log. */
export function credentialRevocation(statuses: readonly StatusChange[], revoked: Revocation): Change {
  const { by, sessionId, mask, barred, issuedCount } = revoked;
  return {
    session: { id: sessionId, anytime: SESSION_STATUSES, issuedExactly: issuedCount, bars: { mask, barred } },
    statuses,
    audit: { by, change: describeRevocation(revoked, statuses) },
  };
}

/** Ends an authorization with a code; `session` is opened with it where the wallet came without an offer. */
export const authorizationGrant = (
  authorization: Authorization,
  grant: NewGrant,
  session?: Session,
  uses: readonly ConsumedValue[] = [],
): Change => ({
  authorization,
  uses,
  opens: { grant, ...(session !== undefined && { session }) },
  ...(session === undefined ? { session: { id: grant.sessionId, anytime: ISSUING_STATUSES } } : { serving: true as const }),
});

export const issuanceDeferral = (transaction: DeferredTransaction, bit: number): Change => ({
  session: { ...issuing(transaction.sessionId, bit), deferredBelow: MAX_ISSUANCES, lastsUntil: transaction.expiresAt },
  opens: { deferred: transaction },
});

export const deferredCompletion = (
  id: string,
  credentials: readonly string[],
  batch: IssuedBatch,
  bit: number,
  by: TenantActor,
): Change => ({
  deferred: { id, act: 'complete', credentials, batchId: batch.id },
  session: { ...issuing(batch.sessionId, bit), counts: true },
  issued: batch,
  audit: { by, change: describeDeferred(id, 'completed') },
});

export const deferredFailure = (id: string, errorMessage: string, by: TenantActor | null): Change => ({
  deferred: { id, act: 'fail', errorMessage },
  ...(by !== null && { audit: { by, change: describeDeferred(id, 'failed') } }),
});

/** The store for one tenant. Steps that first read what they change stand here; every other one is `commit` of a change. */
export function stepsOf(store: Store, tenantId: TenantId) {
  const reads = store.read(tenantId);
  const commit = (change: Change, now = change.opens?.session?.createdAt ?? NOW) => store.commit(tenantId, change, now);
  /** What a use case assumes that read the tenant at this revision. */
  const assuming = async (revision: number | undefined): Promise<{ revisions?: Revisions }> => {
    const state = await reads.state();
    if (revision === undefined || state === undefined) return {};
    const all = state.revisions.all + revision - state.revision;
    return { revisions: { ...state.revisions, all } };
  };
  return {
    ...reads,
    ...store.lists(tenantId),
    commit,
    assuming,
    async fetchSession(publicId: PublicId, now: Date) {
      const before = await reads.sessionByPublicId(publicId);
      if (before?.session === undefined) return before && { ...before, changed: false };
      const { done: changed } = await commit({ serving: true, session: fetchedChange(before.session) }, now);
      const after = await reads.sessionByPublicId(publicId);
      return after && { ...after, changed };
    },
    /** A pre-authorized code that needs no transaction code. */
    async redeemGrant(codeHash: string, redeemed: Redemption, uses: readonly ConsumedValue[], now: Date) {
      const found = await reads.grantByCode(codeHash);
      const grant = found?.grant;
      if (grant === undefined || grant.kind !== 'pre_authorized_code' || grant.txCodeHash !== null) return undefined;
      const committed = await commit({ serving: true, ...grantRedemption(grant, redeemed, uses) }, now);
      if (committed.done) return { tenant: found?.tenant, grant };
      return committed.part === 'uses' ? committed.kind : undefined;
    },
    async claimCredentialRequest(publicId: PublicId, uses: readonly ConsumedValue[], grantId?: string) {
      const claim = { uses, ...(grantId !== undefined && { unrevoked: grantId }) };
      const committed = await commit(claim, NOW);
      const read = await reads.sessionByPublicId(publicId);
      if (read === undefined) return undefined;
      const replayed = !committed.done && committed.part === 'uses' ? committed.kind : undefined;
      const revoked = !committed.done && committed.part === 'unrevoked';
      return { ...read, revoked, ...(replayed !== undefined && { replayed }) };
    },
    async issueAtOnce(
      issuance: {
        readonly sessionId: SessionId;
        readonly grantId?: string | undefined;
        readonly revision?: number;
        readonly used: readonly ConsumedValue[];
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
      const session = acceptAndEnd({ id }, event, outcome);
      return (await commit({ serving: true, ...(await assuming(revision)), session }, now)).done;
    },
    async recordOutcome(session: Session, event: 'complete' | 'fail' | undefined, outcome: SessionOutcome, now: Date) {
      const from: readonly string[] = event === undefined ? SESSION_STATUSES : MOVES[event].from;
      if (!from.includes(session.status)) return undefined;
      const committed = await commit({ session: updateOutcome(session, outcome, event) }, now);
      return committed.done ? committed.session?.version : undefined;
    },
    async retrieveDeferred(id: string, publicId: PublicId, bit: number, all: number, reason: string, now: Date) {
      const transaction = await reads.deferred(id);
      if (transaction?.publicId !== publicId) return undefined;
      const sets = { bit, all, last: MOVES.complete };
      const session = { id: transaction.sessionId, anytime: ISSUING_STATUSES, unbarred: bit, sets };
      const committed = await commit({ deferred: { id, act: 'retrieve' }, session }, now);
      if (committed.done) return { transaction, completed: committed.session?.moved };
      if (committed.part !== 'session') return undefined;
      return (await commit({ deferred: { id, act: 'refuse', errorMessage: reason } }, now)).done ? 'refused' : undefined;
    },
  };
}
