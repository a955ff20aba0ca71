import { object, z } from 'zod';
import { describeRevocation } from '../../domain/audit/describe-change.ts';
import { SESSION_STATUSES } from '../../domain/sessions/session.ts';
import type { SessionChange } from '../../domain/sessions/session-change.ts';
import { LINE_PATTERN } from '../../domain/shared/address-patterns.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { SessionId } from '../../domain/shared/ids.ts';
import { isText } from '../../domain/shared/json.ts';
import { findEntryProblem } from '../../domain/status-lists/bits.ts';
import type { IssuedBatch, StatusChange, StatusList } from '../../domain/status-lists/status-list.ts';
import type { CachedCaller, TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { attemptFor } from '../transactions/attempt.ts';
import { type TenantTransaction, TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { assertMayAccess } from './issued-session.ts';
import { StatusAllocator } from './status-allocator.ts';

const MAX_REASON = 500;

const RevocationReason = z
  .string()
  .min(1)
  .max(MAX_REASON)
  .refine((text) => isText(text) && !/\p{Cc}/u.test(text), 'no control characters')
  .meta({ pattern: LINE_PATTERN })
  .describe(
    'Reason for the audit log; wallets and verifiers never see it. The log is kept longer than the session: no names or other personal data',
  );

export const Revocation = object({
  sessionId: z.string().min(1).max(128),
  status: z
    .literal([0, 1, 2], '0 valid, 1 revoked or 2 suspended')
    .describe('0 valid, 1 revoked, 2 suspended. Revoked is final; valid and suspended can be changed'),
  credentialConfigurationId: z.string().min(1).max(128).optional(),
  reason: RevocationReason.optional(),
}).meta({ id: 'Revocation' });
export type Revocation = z.infer<typeof Revocation>;

const VALID = 0;
const REVOKED = 1;
/** Limit of retries after concurrent issuances of the session. */
const MAX_ATTEMPTS = 10;

/** Changes the status of all credentials of a session, or of those of one configuration, in one transaction. */
export class RevokeSession extends needs({ ...TRANSACTION_PORTS, statusAllocator: StatusAllocator }) {
  /**
   * @returns the number of credentials whose status changed.
   * @throws Failure `not_found` for an unknown session, `conflict` when it issued no credential with a status or one that is revoked,
   *   `invalid_input` when a list cannot express the status.
   */
  async execute(caller: CachedCaller, revocation: Revocation): Promise<number> {
    for (let remainingAttempts = MAX_ATTEMPTS; ; remainingAttempts--) {
      try {
        return await attemptFor(this.ports, caller, (transaction, currentCaller) => this.#revoke(transaction, currentCaller, revocation));
      } catch (error) {
        if (!(error instanceof Failure) || error.code !== 'conflict' || error.cause !== CONCURRENT_ISSUANCE || remainingAttempts === 0)
          throw error;
      }
    }
  }

  async #revoke(transaction: TenantTransaction, caller: TenantCaller, revocation: Revocation): Promise<number> {
    const sessionId = revocation.sessionId as SessionId;
    // The issuance record outlives the session, so a credential can be revoked as long as it is valid.
    const issued = await transaction.confirm(transaction.reads.issued(sessionId));
    const { batches: allBatches, configurationIds: offeredIds = [] } = issued;
    await assertMayAccess(transaction.reads, caller, sessionId, issued);
    const requestedId = revocation.credentialConfigurationId;
    const batches = allBatches.filter((batch) => requestedId === undefined || batch.credentialConfigurationId === requestedId);
    const changes = await this.#changesOf(caller, batches, revocation.status);
    if (changes.length === 0) {
      throw new Failure(
        'conflict',
        requestedId === undefined
          ? 'this session issued no credential that has a status'
          : `this session issued no credential of ${requestedId} with a status`,
      );
    }
    const changedCount = await countChanged(transaction, changes, revocation.status);
    // A wallet whose credential was revoked must not get another one with its access token.
    const sessionChange: SessionChange = {
      id: sessionId,
      anytime: SESSION_STATUSES,
      issuedExactly: allBatches.length,
      bars: { mask: maskOf(offeredIds, requestedId), barred: revocation.status !== VALID },
    };
    const auditChange = describeRevocation(revocation, changes);
    const change = { session: sessionChange, statuses: changes, audit: { by: caller, change: auditChange } };
    await transaction.commit(change, { session: concurrentIssuanceError, statuses: revocationIsFinalError });
    return changedCount;
  }

  async #changesOf(caller: TenantCaller, batches: readonly IssuedBatch[], status: number): Promise<readonly StatusChange[]> {
    const changes: StatusChange[] = [];
    for (const { statusListId, firstCounter, count } of batches) {
      if (statusListId === null || firstCounter === null) continue;
      const list = await this.#list(caller, statusListId);
      // Token Status List section 7.1: with one bit there are only valid and invalid.
      if (findEntryProblem(list.bits, list.capacity, { index: 0, status }) !== undefined) {
        throw invalidInput(
          'status',
          `the status list of this credential has ${list.bits} bit; for credentials issued later, set bits to 2 by PUT /status-list-config`,
        );
      }
      for (const index of this.ports.statusAllocator.indicesOf(caller.tenantId, list, firstCounter, count)) {
        changes.push({ listId: list.id, index, status });
      }
    }
    return changes;
  }

  async #list(caller: TenantCaller, id: string): Promise<StatusList> {
    const list = (await caller.tenant.statusLists()).find((candidate) => candidate.id === id);
    if (list === undefined) throw new Failure('conflict', 'the status list of this credential no longer exists');
    return list;
  }
}

/**
 * Counts the credentials whose stored status differs from the new one.
 * @throws Failure `conflict` when a revoked credential would get another status. The store rejects that as well, for a revocation
 *   that is committed after this read.
 */
async function countChanged(transaction: TenantTransaction, changes: readonly StatusChange[], status: number): Promise<number> {
  let count = 0;
  for (const listId of new Set(changes.map((change) => change.listId))) {
    const indices = changes.filter((change) => change.listId === listId).map(({ index }) => index);
    const storedStatuses = await transaction.reads.statusesAt(listId, indices);
    if (status !== REVOKED && storedStatuses.includes(REVOKED)) throw revocationIsFinalError();
    // Entries that were always valid are not stored.
    const statuses = [...storedStatuses, ...Array<number>(indices.length - storedStatuses.length).fill(VALID)];
    count += statuses.filter((storedStatus) => storedStatus !== status).length;
  }
  return count;
}

/** The bits of the affected configurations: of one, or of all that the session offers. */
function maskOf(configurationIds: readonly string[], requestedId: string | undefined): number {
  if (requestedId === undefined) return 2 ** configurationIds.length - 1;
  const position = configurationIds.indexOf(requestedId);
  return position < 0 ? 0 : 2 ** position;
}

/** Marks a failure that was caused by a concurrent issuance. */
const CONCURRENT_ISSUANCE = Symbol('issuing');

function concurrentIssuanceError(): Failure {
  const message = 'the session is issuing credentials; try again';
  return new Failure('conflict', message, { cause: CONCURRENT_ISSUANCE });
}

function revocationIsFinalError(): Failure {
  return new Failure('conflict', 'a revocation is final; issue another credential');
}
