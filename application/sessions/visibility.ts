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

/** Roles that see sessions of either kind. */
export const SESSION_ROLES = [
  'issuance:manage',
  'issuance:offer',
  'presentation:manage',
  'presentation:request',
] as const satisfies readonly Role[];

/** The kinds of sessions that the caller's roles are about. */
export function visibleKinds(caller: TenantCaller): SessionKind[] {
  const kinds = caller.roles.flatMap((role) => KIND_OF_ROLE[role] ?? []);
  return [...new Set(kinds)];
}

/** Whether the caller's roles and restrictions let it know of this session, and there is something left to look at. */
export function isVisible(caller: TenantCaller, session: Session): boolean {
  return session.isHidden !== true && mayKnow(caller, session);
}

/** The same also of one whose contents are removed: what is left of it is the right to renew what it gave out. */
export function mayKnow(caller: TenantCaller, session: Session): boolean {
  if (!caller.roles.some((role) => KIND_OF_ROLE[role] === session.kind)) return false;
  const allowed = session.kind === 'issuance' ? caller.allowedIssuanceConfigs : caller.allowedPresentationConfigs;
  // Empty or null means all.
  if (allowed === null || allowed.length === 0) return true;
  return session.configurationIds.every((id) => allowed.includes(id));
}

/** @throws Failure `not_found`, alike for an unknown session and one that the caller must not know of. */
export async function readVisibleSession(store: Store, caller: TenantCaller, id: SessionId): Promise<Session> {
  return visible(caller, (await store.read(caller.tenantId).session(id))?.session);
}

/** @throws Failure `not_found`, alike for an unknown session and one that the caller must not know of. */
export function visible(caller: TenantCaller, session: Session | undefined): Session {
  if (session === undefined || !isVisible(caller, session)) throw noSession();
  return session;
}

export function noSession(): Failure {
  return new Failure('not_found', 'there is no such session');
}
