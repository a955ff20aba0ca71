import type { JsonObject } from '../shared/json.ts';
import { isSameIssuer } from '../shared/web-address.ts';
import { assertForeignTimes, ForeignTokenError, parseAudiences } from './foreign-token.ts';

/** OpenID Connect Core 1.0 section 5.3.2 does not define `typ`; some providers write these values. */
export const USERINFO_TYPES: readonly (string | undefined)[] = [undefined, 'jwt', 'userinfo+jwt'];

/**
 * Validates the claims of a userinfo response (OpenID Connect Core 1.0 section 5.3.2).
 * @param isSigned true for a JWT, whose signature was verified before.
 * @throws ForeignTokenError `subject`, `issuer`, `audience`, `expired`, `not_yet_valid`.
 */
export function assertUserinfoClaims(
  claims: JsonObject,
  expected: {
    readonly issuer: string;
    readonly clientId: string;
    readonly subject: string;
    readonly now: Date;
    readonly isSigned: boolean;
  },
): void {
  // section 5.3.2: otherwise the claims are about another user (token substitution, section 16.11)
  if (claims['sub'] !== expected.subject) throw new ForeignTokenError('subject');
  if (!expected.isSigned) return;
  const { iss, aud } = claims;
  // section 5.3.2: a signed response should have both
  if (iss !== undefined && (typeof iss !== 'string' || !isSameIssuer(iss, expected.issuer))) throw new ForeignTokenError('issuer');
  if (aud !== undefined && !parseAudiences(aud).includes(expected.clientId)) throw new ForeignTokenError('audience');
  assertForeignTimes(claims, expected.now);
}
