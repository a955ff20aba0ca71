import type { Change } from '../../domain/changes/change.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { referenceHash } from '../../domain/sessions/session-search.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

type NewSessionFields = Pick<Session, 'tenantId' | 'publicId' | 'kind' | 'createdAt' | 'expiresAt' | 'configurationIds'> & Partial<Session>;

export function newSession(random: Random, fields: NewSessionFields): Session {
  return {
    id: random.token() as SessionId,
    status: 'active',
    version: 1,
    updatedAt: fields.createdAt,
    useDcApi: false,
    request: null,
    outcome: null,
    issuedMask: 0,
    claimedAt: null,
    ...fields,
  };
}

/** The entry by which a new session is found under its caller's reference. */
export function referenceEntry({ id }: Pick<Session, 'id'>, reference: string | undefined): Pick<Change, 'subject'> {
  return reference === undefined ? {} : { subject: { hash: referenceHash(reference), sessionId: id } };
}

export async function sessionSeconds(tenant: TenantConfiguration, { sessionTtlSeconds }: ServiceSettings): Promise<number> {
  return (await tenant.tenant()).sessionConfig?.ttlSeconds ?? sessionTtlSeconds;
}
