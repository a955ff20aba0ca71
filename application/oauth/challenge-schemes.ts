import { Failure, type FailureCode } from '../../domain/shared/failure.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';

/** Failures with a challenge (RFC 6750 section 3.1, RFC 9449 section 7.1). */
const CHALLENGED: readonly FailureCode[] = ['missing_token', 'invalid_token', 'invalid_dpop_proof', 'use_dpop_nonce', 'insufficient_scope'];

/**
 * RFC 9449 section 7.2: the challenge names each scheme that is accepted here, also for a token that was revoked, which only the
 * commit finds out, or that does not cover the request.
 */
export async function withChallengeSchemes<T>(tenant: TenantConfiguration, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure) || !CHALLENGED.includes(error.code)) throw error;
    if (error.details.bearer === true || (await tenant.issuance()).dPopRequired) throw error;
    throw new Failure(error.code, { ...error.details, bearer: true }, { cause: error.cause });
  }
}
