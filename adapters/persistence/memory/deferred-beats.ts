import type { DeferredBeats } from '../../../application/ports/authorization-beats.ts';
import { MAX_ISSUANCES } from '../../../application/ports/store.ts';
import { describeDeferred } from '../../../domain/audit/describe-change.ts';
import { OPEN_STATUSES, type Session } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { AuditChains } from './audit-chains.ts';
import type { Pass } from './memory-store.ts';
import type { State } from './state.ts';

export function deferredBeats(
  state: State,
  pass: Pass,
  chains: AuditChains,
  tenantId: TenantId,
): DeferredBeats {
  const { batches, deferred, sessions } = state;
  const mayGoOn = ({ status }: Session) => status !== 'failed' && status !== 'expired';
  const mayHandOut = (session: Session, bit: number) =>
    mayGoOn(session) && ((state.bars.find(tenantId, session.id)?.mask ?? 0) & bit) === 0;
  const mayIssue = (session: Session, bit: number) =>
    mayHandOut(session, bit) &&
    batches.list(tenantId, ({ sessionId }) => sessionId === session.id).length < MAX_ISSUANCES;

  return {
    openDeferred: (transaction, bit) =>
      pass(() => {
        const session = sessions.find(tenantId, transaction.sessionId);
        const others = deferred.list(tenantId, ({ sessionId }) => sessionId === transaction.sessionId);
        if (session === undefined || !mayIssue(session, bit) || others.length >= MAX_ISSUANCES) return false;
        const until = Math.max(session.expiresAt.getTime(), transaction.expiresAt.getTime());
        state.saveSession({ ...session, expiresAt: new Date(until) });
        deferred.put(tenantId, transaction.id, transaction);
        return true;
      }),
    findDeferred: (id) => pass(() => deferred.find(tenantId, id)),
    listDeferred: ({ sessionId, limit }) =>
      pass(() =>
        deferred
          .list(tenantId, (row) => sessionId === undefined || row.sessionId === sessionId)
          .sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? -1 : 1))
          .slice(0, limit),
      ),
    completeDeferred: (id, credentials, batch, bit, now, by) =>
      pass(() => {
        const row = deferred.find(tenantId, id);
        const session = sessions.find(tenantId, batch.sessionId);
        if (row?.status !== 'pending' || row.expiresAt <= now || row.sessionId !== batch.sessionId)
          return false;
        if (session === undefined || !mayIssue(session, bit)) return false;
        deferred.put(tenantId, id, {
          ...row,
          status: 'ready',
          credentials,
          batchId: batch.id,
          updatedAt: now,
        });
        batches.put(tenantId, `${batch.sessionId} ${batch.id}`, batch);
        chains.note(tenantId, by, describeDeferred(id, 'completed'));
        return true;
      }),
    failDeferred: (id, errorMessage, now, by) =>
      pass(() => {
        const row = deferred.find(tenantId, id);
        if (row?.status !== 'pending' || row.expiresAt <= now) return false;
        deferred.put(tenantId, id, { ...row, status: 'failed', errorMessage, updatedAt: now });
        if (by !== null) chains.note(tenantId, by, describeDeferred(id, 'failed'));
        return true;
      }),
    retrieveDeferred: (id, publicId, bit, completeMask, reason, now) =>
      pass(() => {
        const row = deferred.find(tenantId, id);
        if (row?.status !== 'ready' || row.publicId !== publicId || row.expiresAt <= now) return undefined;
        const session = sessions.find(tenantId, row.sessionId);
        if (session === undefined) return undefined;
        const ended = { ...row, credentials: null, updatedAt: now };
        if (!mayHandOut(session, bit)) {
          deferred.put(tenantId, id, { ...ended, status: 'failed', errorMessage: reason });
          return 'refused';
        }
        deferred.put(tenantId, id, { ...ended, status: 'retrieved' });
        const issued = { ...session, issuedMask: session.issuedMask | bit, updatedAt: now };
        const completed = issued.issuedMask === completeMask && OPEN_STATUSES.includes(session.status);
        const next: Session = completed
          ? { ...issued, status: 'completed', version: session.version + 1 }
          : issued;
        state.saveSession(next);
        if (completed) state.log(next, now);
        return { transaction: row, completed };
      }),
  };
}
