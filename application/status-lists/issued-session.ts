import { assertMayUse } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { TenantCaller } from '../caller.ts';
import type { TenantReads } from '../ports/store.ts';

type IssuedBySession = { readonly configurationIds?: readonly string[] | undefined; readonly batches: readonly IssuedBatch[] };

/**
 * Checks access to the issuance record of a session, which outlives the session; so both are considered.
 * @throws Failure `not_found` for an unknown session and for one that the caller must not see.
 */
export async function assertMayAccess(
  reads: Pick<TenantReads, 'session'>,
  caller: TenantCaller,
  id: SessionId,
  { configurationIds = [], batches }: IssuedBySession,
): Promise<void> {
  if (batches.length === 0) {
    const session = (await reads.session(id))?.session;
    if (session?.kind !== 'issuance') throw sessionNotFoundError();
    assertVisible(caller, session.configurationIds);
  }
  // A revocation also bars configurations of which nothing was issued yet.
  assertVisible(caller, [...configurationIds, ...batches.map((batch) => batch.credentialConfigurationId)]);
}

/** A restricted client does not learn about sessions beyond its configurations. */
function assertVisible(caller: TenantCaller, configurationIds: readonly string[]): void {
  try {
    assertMayUse(caller.allowedIssuanceConfigs, configurationIds);
  } catch {
    throw sessionNotFoundError();
  }
}

function sessionNotFoundError(): Failure {
  return new Failure('not_found', 'there is no such session');
}
