import { assertMayUse } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import type { IssuedBatch } from '../../domain/status-lists/status-list.ts';
import type { TenantCaller } from '../caller.ts';
import type { TenantReads } from '../ports/store.ts';

type IssuedBySession = { readonly configurationIds?: readonly string[] | undefined; readonly batches: readonly IssuedBatch[] };

/**
 * What was issued is kept longer than the session, so whether a caller may know of it is told by both.
 * @throws Failure `not_found`, alike for a session that there is not and one that the caller must not know of.
 */
export async function assertMayKnow(
  reads: Pick<TenantReads, 'session'>,
  caller: TenantCaller,
  id: SessionId,
  { configurationIds = [], batches }: IssuedBySession,
): Promise<void> {
  if (batches.length === 0) {
    const session = (await reads.session(id))?.session;
    if (session?.kind !== 'issuance') throw unknown();
    assertVisible(caller, session.configurationIds);
  }
  // Those of which nothing was issued yet are barred by a revocation, too.
  assertVisible(caller, [...configurationIds, ...batches.map((batch) => batch.credentialConfigurationId)]);
}

/** A restricted client does not learn of sessions beyond its configurations. */
function assertVisible(caller: TenantCaller, configurationIds: readonly string[]): void {
  try {
    assertMayUse(caller.allowedIssuanceConfigs, configurationIds);
  } catch {
    throw unknown();
  }
}

function unknown(): Failure {
  return new Failure('not_found', 'there is no such session');
}
