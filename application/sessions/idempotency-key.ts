import type { Change } from '../../domain/changes/change.ts';
import { IDEMPOTENCY_SECONDS, type RequestIdentity } from '../../domain/sessions/idempotent-response.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { CommitFailures, TenantTransaction } from '../transactions/tenant-transaction.ts';

/** Returns the parts of a commit that store an idempotent response. */
export type PrepareStorage<T> = (answer: T) => { readonly change: Pick<Change, 'keeps'>; readonly refusals: CommitFailures };

/**
 * Answers a repeated request with the same idempotency key like the first time, regardless of later changes. Of several concurrent
 * requests one creates the response, and the others get the same one.
 * @param tenantTransaction whose rights to the response were checked.
 * @param name absent without an idempotency key: then nothing is stored.
 * @param make creates the response and commits it with the given parts.
 * @throws Failure `conflict` if the key was used for another request.
 */
export async function withIdempotencyKey<T extends object>(
  tenantTransaction: TenantTransaction,
  name: RequestIdentity | undefined,
  make: (prepareStorage: PrepareStorage<T>) => Promise<T>,
): Promise<T> {
  if (name === undefined) return make(() => ({ change: {}, refusals: {} }));
  const storedResponse = await findResponse<T>(tenantTransaction, name);
  if (storedResponse !== undefined) return storedResponse;
  const keyInUseError = new Failure('conflict', 'another request with this Idempotency-Key is in progress; try again');
  const { id, requestHash } = name;
  const expiresAt = new Date(tenantTransaction.now.getTime() + IDEMPOTENCY_SECONDS * 1000);
  try {
    return await make((answer) => ({
      change: { keeps: { id, said: { requestHash, answer: answer as JsonObject }, expiresAt } },
      refusals: { keeps: () => keyInUseError },
    }));
  } catch (error) {
    if (error !== keyInUseError) throw error;
  }
  const concurrentResponse = await findResponse<T>(tenantTransaction, name);
  if (concurrentResponse === undefined) throw keyInUseError;
  return concurrentResponse;
}

async function findResponse<T>(transaction: TenantTransaction, { id, requestHash }: RequestIdentity): Promise<T | undefined> {
  // Reads the tenant as well: a caller whose rights ended meanwhile gets no response.
  const { response: storedResponse } = await transaction.confirm(transaction.reads.idempotentResponse(id, transaction.now));
  if (storedResponse === undefined) return undefined;
  // Draft-ietf-httpapi-idempotency-key-header-07 section 2.7: a key stands for one request
  if (storedResponse.said.requestHash !== requestHash)
    throw new Failure('conflict', 'this Idempotency-Key was used for another request; use a new one');
  return storedResponse.said.answer as T;
}
