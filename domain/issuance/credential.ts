import type { JsonObject } from '../shared/json.ts';
import type { PublicJwk } from '../shared/jwk.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;

/**
 * Times of a credential, rounded so that copies issued together or one after the other cannot be linked by them
 * (RFC 9901 section 10.1, OpenID4VCI 1.0 section 15.4.1): down to the day, for lifetimes under two days to the
 * hour; the end is rounded up, so no credential lives shorter than it was meant to.
 */
export function credentialTimes(
  now: Date,
  lifeTimeSeconds: number | null | undefined,
): { iat: number; exp?: number } {
  const seconds = Math.floor(now.getTime() / 1000);
  const unit =
    lifeTimeSeconds !== null && lifeTimeSeconds !== undefined && lifeTimeSeconds < 2 * DAY ? HOUR : DAY;
  const iat = Math.floor(seconds / unit) * unit;
  if (lifeTimeSeconds === null || lifeTimeSeconds === undefined) return { iat };
  return { iat, exp: Math.ceil((seconds + lifeTimeSeconds) / unit) * unit };
}

/** Claims of the protocol in an SD-JWT VC (SD-JWT VC section 2.2.2, Token Status List section 6.2). */
export function protocolClaims(parts: {
  readonly issuer: string;
  readonly vct: string;
  readonly times: { readonly iat: number; readonly exp?: number };
  readonly holderKey?: PublicJwk;
  readonly status?: { readonly idx: number; readonly uri: string };
}): JsonObject {
  const { issuer, vct, times, holderKey, status } = parts;
  return {
    iss: issuer,
    vct,
    ...times,
    // RFC 7800 section 3.2: the public key alone, without anything that names its holder
    ...(holderKey === undefined ? {} : { cnf: { jwk: holderKey as unknown as JsonObject } }),
    ...(status === undefined ? {} : { status: { status_list: status } }),
  };
}
