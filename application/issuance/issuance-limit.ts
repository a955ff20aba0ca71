import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import type { IssuanceLimit } from '../../domain/issuance/issuing.ts';
import { offerEndedError } from '../../domain/issuance/issuing.ts';
import { MAX_ISSUANCES } from '../../domain/sessions/session.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { TenantReads } from '../ports/store.ts';

type Limited = Pick<CredentialConfiguration, 'id' | 'maxIssuances' | 'oneActiveSet'>;

/** Number of credentials of the configuration that one session may issue. */
export function limitOf({ maxIssuances }: Limited): number {
  return maxIssuances ?? MAX_ISSUANCES;
}

/**
 * Records an issuance within the limit of its configuration. Fast path: a session whose total is below the limit needs no read. Otherwise
 * the issued batches are read from `store`.
 * @param commit gets the expected count of the session, and the recorded batches if they were read; returns false if the session
 *   was not as expected.
 * @throws Failure `credential_request_denied` when the limit is reached, or the session may not issue.
 */
export async function commitWithinLimit(
  store: { readonly reads: TenantReads },
  sessionId: SessionId,
  configuration: Limited,
  commit: (limit: IssuanceLimit, earlierBatches: readonly IssuedBatch[]) => Promise<boolean>,
): Promise<void> {
  const limit = limitOf(configuration);
  if (!configuration.oneActiveSet && (await commit({ issuedBelow: limit }, []))) return;
  let previousCount = -1;
  for (;;) {
    const { batches = [] } = (await store.reads.issued(sessionId)) ?? {};
    const configurationBatches = batches.filter(({ credentialConfigurationId }) => credentialConfigurationId === configuration.id);
    const isRetryUseful = configuration.oneActiveSet || batches.length >= limit;
    // If no concurrent issuance happened, the commit failed for another reason.
    if (configurationBatches.length >= limit) throw offerEndedError(`maxIssuances of ${configuration.id} (${limit}) is used up`);
    if (!isRetryUseful || batches.length === previousCount) throw offerEndedError();
    previousCount = batches.length;
    if (await commit({ issuedExactly: previousCount }, configurationBatches)) return;
  }
}
