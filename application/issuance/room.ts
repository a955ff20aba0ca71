import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { Room } from '../../domain/issuance/issuing.ts';
import { offerOver } from '../../domain/issuance/issuing.ts';
import { MAX_ISSUANCES } from '../../domain/sessions/session.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { TenantReads } from '../ports/store.ts';

type Limited = Pick<CredentialConfiguration, 'id' | 'maxIssuances' | 'oneActiveSet'>;

/** How often one session issues a credential of the configuration. */
export function limitOf({ maxIssuances }: Limited): number {
  return maxIssuances ?? MAX_ISSUANCES;
}

/**
 * Records an issuance within the limit of its configuration. A session that issued less than that altogether has room for
 * sure, so only for others it is read what they issued.
 * @param store is read when that is not sure.
 * @param commit with what it expects of the session, and what is on record by then where that was read; false where the
 *   session was not as expected.
 * @throws Failure `credential_request_denied` when there is no room, or the session may not issue.
 */
export async function withinLimit(
  store: { readonly reads: TenantReads },
  sessionId: SessionId,
  configuration: Limited,
  commit: (room: Room, before: readonly IssuedBatch[]) => Promise<boolean>,
): Promise<void> {
  const limit = limitOf(configuration);
  if (!configuration.oneActiveSet && (await commit({ issuedBelow: limit }, []))) return;
  let seen = -1;
  for (;;) {
    const { batches = [] } = (await store.reads.issued(sessionId)) ?? {};
    const own = batches.filter(({ credentialConfigurationId }) => credentialConfigurationId === configuration.id);
    const mayHelp = configuration.oneActiveSet || batches.length >= limit;
    // Where nobody issued meanwhile, it is refused for something else.
    if (own.length >= limit) throw offerOver(`maxIssuances of ${configuration.id} (${limit}) is used up`);
    if (!mayHelp || batches.length === seen) throw offerOver();
    seen = batches.length;
    if (await commit({ issuedExactly: seen }, own)) return;
  }
}
