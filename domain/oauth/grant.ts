import { Failure } from '../shared/failure.ts';
import type { PublicId, SessionId } from '../shared/ids.ts';

/** A right to one access token. The code itself is never stored, only its SHA-256. */
export type Grant = {
  readonly id: string;
  readonly kind: 'pre_authorized_code';
  readonly sessionId: SessionId;
  readonly publicId: PublicId;
  readonly codeHash: string;
  /** Keyed hash of the transaction code; null when none is needed. */
  readonly txCodeHash: string | null;
  readonly credentialConfigurationIds: readonly string[];
  readonly expiresAt: Date;
  readonly attempts: number;
  readonly consumedAt: Date | null;
};

/** Wrong transaction codes after which the pre-authorized code is spent (OpenID4VCI 1.0 section 13.6.3). */
export const MAX_TX_CODE_ATTEMPTS = 5;

/**
 * Decides what a redemption does to a pre-authorized code.
 * `wrong_tx_code` counts an attempt; it does not burn the offer until the last one.
 * @throws Failure `invalid_grant` for a code that is unknown, spent or expired, the same for each
 *   (OpenID4VCI 1.0 section 6.3); `invalid_request` when a transaction code is missing or was never asked for.
 */
export function redeem(
  grant: Grant | undefined,
  txCodeHash: string | null,
  now: Date,
): { grant: Grant; outcome: 'consume' | 'wrong_tx_code' } {
  if (
    grant === undefined ||
    grant.consumedAt !== null ||
    grant.expiresAt <= now ||
    grant.attempts >= MAX_TX_CODE_ATTEMPTS
  ) {
    throw new Failure('invalid_grant', 'the pre-authorized code is unknown, used or expired');
  }
  if (grant.txCodeHash === null && txCodeHash !== null) {
    throw new Failure('invalid_request', 'this offer needs no tx_code');
  }
  if (grant.txCodeHash !== null && txCodeHash === null) {
    throw new Failure('invalid_request', 'tx_code is missing');
  }
  return { grant, outcome: grant.txCodeHash === txCodeHash ? 'consume' : 'wrong_tx_code' };
}
