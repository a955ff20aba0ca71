import type { Role } from '../../domain/clients/role.ts';
import type { Session, SessionKind } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { TenantCaller } from '../caller.ts';
import type { Store } from '../ports/store.ts';

const KIND_OF_ROLE: Readonly<Partial<Record<Role, SessionKind>>> = {
  'issuance:manage': 'issuance',
  'issuance:offer': 'issuance',
  'presentation:manage': 'verification',
  'presentation:request': 'verification',
};

/** Roles that may see sessions. */
export const SESSION_ROLES = [
  'issuance:manage',
  'issuance:offer',
  'presentation:manage',
  'presentation:request',
] as const satisfies readonly Role[];

export function visibleKinds(caller: TenantCaller): SessionKind[] {
  const kinds = caller.roles.flatMap((role) => KIND_OF_ROLE[role] ?? []);
  return [...new Set(kinds)];
}

/** True if the caller's roles and restrictions cover the session, and it is not hidden. */
export function isVisible(caller: TenantCaller, session: Session): boolean {
  return session.isHidden !== true && mayAccess(caller, session);
}

/** Like `isVisible`, also for a hidden session, of which only the right to refresh credentials remains. */
export function mayAccess(caller: TenantCaller, session: Session): boolean {
  if (!caller.roles.some((role) => KIND_OF_ROLE[role] === session.kind)) return false;
  const allowed = session.kind === 'issuance' ? caller.allowedIssuanceConfigs : caller.allowedPresentationConfigs;
  // Empty or null means all.
  if (allowed === null || allowed.length === 0) return true;
  return session.configurationIds.every((id) => allowed.includes(id));
}

/** @throws Failure `not_found` for an unknown session and for one that the caller must not see. */
export async function readVisibleSession(store: Store, caller: TenantCaller, id: SessionId): Promise<Session> {
  return assertVisible(caller, (await store.read(caller.tenantId).session(id))?.session);
}

/** @throws Failure `not_found` for an unknown session and for one that the caller must not see. */
export function assertVisible(caller: TenantCaller, session: Session | undefined): Session {
  if (session === undefined || !isVisible(caller, session)) throw sessionNotFoundError();
  return session;
}

export function sessionNotFoundError(): Failure {
  return new Failure('not_found', 'there is no such session');
}
