import type { AuthorizationBeats } from '../../../application/ports/authorization-beats.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import { OPEN_STATUSES } from '../../../domain/sessions/session.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { Pass } from './memory-store.ts';
import { newGrant } from './session-beats.ts';
import type { State } from './state.ts';
import { useValues } from './wallet-beats.ts';

export function authorizationBeats(state: State, pass: Pass, tenantId: TenantId): AuthorizationBeats {
  const { authorizations, grants, sessions, subjects } = state;
  const isActive = () => state.head(tenantId)?.status === 'active';
  const isNext = ({ id, version }: Authorization) =>
    authorizations.find(tenantId, id)?.version === version - 1 && isActive();

  return {
    openAuthorization: (authorization, used) =>
      pass(() => {
        if (!isActive()) return undefined;
        const known = useValues(state, tenantId, used);
        if (known !== undefined) return known;
        authorizations.put(tenantId, authorization.id, authorization);
        return 'opened';
      }),
    findAuthorization: (id) =>
      pass(() => {
        const head = state.head(tenantId);
        return head === undefined ? undefined : { head, authorization: authorizations.find(tenantId, id) };
      }),
    advanceAuthorization: (next, used) =>
      pass(() => {
        if (!isNext(next)) return 'stale';
        const known = useValues(state, tenantId, used);
        if (known !== undefined) return known;
        authorizations.put(tenantId, next.id, next);
        return 'advanced';
      }),
    grantAuthorization: (done, grant, session, used = []) =>
      pass(() => {
        const present = sessions.find(tenantId, grant.sessionId);
        const isOpen = present !== undefined && [...OPEN_STATUSES, 'completed'].includes(present.status);
        if (!isNext(done) || (session === undefined && !isOpen)) return false;
        if (useValues(state, tenantId, used) !== undefined) return false;
        authorizations.put(tenantId, done.id, done);
        if (session !== undefined) {
          sessions.put(tenantId, session.id, { ...session, tenantId });
          state.log({ ...session, tenantId }, session.createdAt);
        }
        grants.put(tenantId, grant.id, newGrant(grant));
        return true;
      }),
    findGrantById: (id) =>
      pass(() => {
        const head = state.head(tenantId);
        return head === undefined ? undefined : { head, grant: grants.find(tenantId, id) };
      }),
    refreshGrant: (id, generation, used, now) =>
      pass(() => {
        const grant = grants.find(tenantId, id);
        const isLive = grant !== undefined && grant.consumedAt !== null && grant.revokedAt === null;
        if (!isLive || grant.generation !== generation || grant.expiresAt <= now) return 'stale';
        const known = useValues(state, tenantId, used);
        if (known !== undefined) return known;
        grants.put(tenantId, id, { ...grant, generation: generation + 1 });
        return 'refreshed';
      }),
    revokeGrant: (id, now) =>
      pass(() => {
        const grant = grants.find(tenantId, id);
        if (grant?.revokedAt === null) grants.put(tenantId, id, { ...grant, revokedAt: now });
      }),
    linkSubject: (subjectHash, sessionId) =>
      pass(() => {
        if (!sessions.has(tenantId, sessionId)) return;
        subjects.put(tenantId, `${subjectHash} ${sessionId}`, { subjectHash, sessionId });
      }),
    findBySubject: (subjectHash) =>
      pass(() =>
        subjects
          .list(tenantId, (row) => row.subjectHash === subjectHash)
          .flatMap(({ sessionId }) => sessions.find(tenantId, sessionId) ?? [])
          .sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? -1 : 1))
          .slice(0, 20),
      ),
  };
}
