import type { Change } from '../../domain/changes/change.ts';
import type { Session } from '../../domain/sessions/session.ts';
import { referenceHash } from '../../domain/sessions/session-search.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

type Opening = Pick<Session, 'tenantId' | 'publicId' | 'kind' | 'createdAt' | 'expiresAt' | 'configurationIds'> & Partial<Session>;

/** A session of which nothing has happened yet, unless `opening` says so. */
export function newSession(random: Random, opening: Opening): Session {
  return {
    id: random.token() as SessionId,
    status: 'active',
    version: 1,
    updatedAt: opening.createdAt,
    useDcApi: false,
    request: null,
    outcome: null,
    issuedMask: 0,
    claimedAt: null,
    ...opening,
  };
}

/** Lets a session that is opened be found by what its caller calls it. */
export function referredTo({ id }: Pick<Session, 'id'>, reference: string | undefined): Pick<Change, 'subject'> {
  return reference === undefined ? {} : { subject: { hash: referenceHash(reference), sessionId: id } };
}

/** Seconds that a session of the tenant lives. */
export async function sessionSeconds(configured: TenantConfiguration, { sessionTtlSeconds }: ServiceSettings): Promise<number> {
  return (await configured.tenant()).sessionConfig?.ttlSeconds ?? sessionTtlSeconds;
}
