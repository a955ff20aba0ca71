import { hash } from 'node:crypto';
import { type CompactJws, parseAlgorithm, parseCompactJws } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, type Json } from '../shared/json.ts';
import { algorithmOf, type PublicJwk, parsePublicJwk, SIGNING_ALGORITHMS } from '../shared/jwk.ts';

/** `private_key_jwt`: a registered client authenticates with a key (RFC 7523 section 2.2). */
export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

const MAX_TOKEN_LENGTH = 16_384;
const MAX_LIFETIME_SECONDS = 600;
const MAX_JTI_LENGTH = 256;
const MAX_KEYS = 100;
/** RFC 7519 section 5.1, and the type of RFC 7523's revision; any other value means another kind of token. */
const TYPES = ['jwt', 'client-authentication+jwt'];

const invalidClientError = (message: string) => new Failure('invalid_client', message);

/** A parsed assertion; its content is not trusted before its signature is verified. */
export type ParsedAssertion = {
  readonly jws: CompactJws;
  /** The client whose registration contains the verification key. */
  readonly clientId: string;
  readonly keyId: string | undefined;
};

/**
 * @returns undefined for a request without assertion.
 * @throws Failure `invalid_client`.
 */
export function parseAssertion(form: Readonly<Record<string, string>>): ParsedAssertion | undefined {
  const { client_assertion: text, client_assertion_type: type, client_id: clientId } = form;
  if (text === undefined && type === undefined) return undefined;
  // RFC 7521 section 4.2
  if (text === undefined || type !== ASSERTION_TYPE) {
    throw invalidClientError(`client_assertion and client_assertion_type ${ASSERTION_TYPE} must be sent together`);
  }
  const jws = text.length > MAX_TOKEN_LENGTH ? undefined : parseCompactJws(text);
  if (jws === undefined) throw invalidClientError('client_assertion is not a JWT');
  const { typ, kid } = jws.header;
  if (typ !== undefined && !(typeof typ === 'string' && TYPES.includes(typ.toLowerCase()))) {
    throw invalidClientError('the typ of client_assertion is that of another token type');
  }
  const { iss, sub } = jws.payload;
  // RFC 7523 section 3: for client authentication both are the client
  if (typeof sub !== 'string' || sub === '' || iss !== sub)
    throw invalidClientError('iss and sub of client_assertion must both be the client_id');
  // RFC 7521 section 4.2
  if (clientId !== undefined && clientId !== sub) throw invalidClientError('client_id is not the subject of the assertion');
  return { jws, clientId: sub, keyId: typeof kid === 'string' ? kid : undefined };
}

/** The keys of a set (RFC 7517 section 5) that may verify the assertion: signature keys of its algorithm that have its key id, or none. */
export function keysFor({ jws, keyId }: ParsedAssertion, keySet: Json | undefined): readonly PublicJwk[] {
  const verdict = parseAlgorithm(jws.header, SIGNING_ALGORITHMS);
  const keys = isJsonObject(keySet) ? keySet['keys'] : undefined;
  if (verdict.fault !== undefined || !Array.isArray(keys)) return [];
  return (keys as readonly Json[]).slice(0, MAX_KEYS).flatMap((entry) => {
    const key = parsePublicJwk(entry);
    if (key === undefined || !isJsonObject(entry)) return [];
    const { kid, use = 'sig' } = entry;
    const matchesKeyId = keyId === undefined || kid === undefined || kid === keyId;
    // RFC 8725 section 3.1: the algorithm follows from the key.
    return matchesKeyId && use === 'sig' && algorithmOf(key) === verdict.algorithm ? [key] : [];
  });
}

/**
 * Validates the claims of a verified assertion (RFC 7523 section 3).
 * @param audience the issuer of the authorization server: an endpoint address could belong to another server.
 * @returns the value to consume, because an assertion is valid once.
 * @throws Failure `invalid_client`.
 */
export function assertAssertionClaims(
  { jws, clientId }: ParsedAssertion,
  audience: string,
  now: Date,
): { readonly hash: string; readonly expiresAt: Date } {
  const seconds = now.getTime() / 1000;
  const earliest = seconds - MAX_LIFETIME_SECONDS;
  const latest = seconds + CLOCK_TOLERANCE_SECONDS;
  const { aud, exp, iat, nbf, jti } = jws.payload;
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (audiences.length !== 1 || audiences[0] !== audience)
    throw invalidClientError('aud of client_assertion is not this authorization server');
  if (typeof exp !== 'number' || exp <= seconds - CLOCK_TOLERANCE_SECONDS) throw invalidClientError('client_assertion has expired');
  if (exp > seconds + MAX_LIFETIME_SECONDS) throw invalidClientError('exp of client_assertion is too far ahead');
  if (iat !== undefined && !(typeof iat === 'number' && iat >= earliest && iat <= latest)) {
    throw invalidClientError('iat of client_assertion is outside the accepted window');
  }
  if (nbf !== undefined && !(typeof nbf === 'number' && nbf <= latest)) throw invalidClientError('client_assertion is not valid yet');
  if (typeof jti !== 'string' || jti === '' || jti.length > MAX_JTI_LENGTH)
    throw invalidClientError('jti of client_assertion is missing or too long');
  const name = JSON.stringify(['client_assertion', clientId, jti]);
  return { hash: hash('sha256', name, 'base64url'), expiresAt: new Date((exp + CLOCK_TOLERANCE_SECONDS) * 1000) };
}
