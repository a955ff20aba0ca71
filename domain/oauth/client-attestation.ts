import { hash } from 'node:crypto';
import { type CompactJws, matchesKey, parseCompactJws } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, type JsonObject } from '../shared/json.ts';
import { type PublicJwk, parsePublicJwk, thumbprint } from '../shared/jwk.ts';

/**
 * Attestation-based client authentication in the two published drafts: 07 (referenced by OpenID4VCI 1.0) and 10, which dropped `iss` from
 * both tokens. Claims that a draft does not require are validated if present.
 */
export const ATTESTATION_TYPE = 'oauth-client-attestation+jwt';
export const POP_TYPE = 'oauth-client-attestation-pop+jwt';

const MAX_TOKEN_LENGTH = 16_384;
const POP_PAST_SECONDS = 300;
const MAX_JTI_LENGTH = 256;
const MAX_CLIENT_ID_LENGTH = 500;

/** Properties of `cnf` that contain or reference another key (RFC 7800 section 3). */
const OTHER_KEYS = ['jwe', 'jku'] as const;

const invalidAttestationError = (message: string) => new Failure('invalid_client_attestation', message);

/** Both tokens, parsed; their content is not trusted before their signatures are verified. */
export type ParsedAttestation = {
  readonly attestation: CompactJws;
  /** Absent if the request's DPoP proof replaces it (draft 10 section 5.2). */
  readonly pop?: CompactJws;
};

export type VerifiedAttestation = {
  /** `sub`: the wallet product, which all its installations share (OpenID4VCI 1.0 section 15.4.4). */
  readonly clientId: string;
  /** RFC 7638 thumbprint of the key of this installation. */
  readonly instance: string;
  /** Absent if the DPoP proof replaces it. */
  readonly proof?: {
    /** Hash of the proof of possession, to be stored until `expiresAt`. */
    readonly hash: string;
    readonly expiresAt: Date;
    readonly challenge: string | undefined;
  };
};

/**
 * @param attestations every `OAuth-Client-Attestation` header field as received; `pops` likewise.
 * @param mayCombine true if a DPoP proof may replace the proof of possession.
 * @returns undefined without both headers.
 * @throws Failure `invalid_client_attestation` for a missing or repeated header, or the wrong kind of JWT.
 */
export function parseAttestation(
  attestations: readonly string[],
  pops: readonly string[],
  mayCombine = false,
): ParsedAttestation | undefined {
  if (attestations.length === 0 && pops.length === 0) return undefined;
  // Attestation-based client authentication (draft 10) section 7.1: exactly one field each
  const attestation = requireSingleHeader(attestations, 'OAuth-Client-Attestation');
  // Draft 10 section 7: without this header the DPoP proof is the proof of possession
  if (pops.length === 0 && mayCombine) return { attestation: parseToken(attestation, ATTESTATION_TYPE, 'attestation') };
  const pop = requireSingleHeader(pops, 'OAuth-Client-Attestation-PoP');
  return { attestation: parseToken(attestation, ATTESTATION_TYPE, 'attestation'), pop: parseToken(pop, POP_TYPE, 'proof of possession') };
}

function requireSingleHeader(values: readonly string[], name: string): string {
  const [value] = values;
  if (value === undefined || values.length > 1 || value.includes(',')) throw invalidAttestationError(`send exactly one ${name} header`);
  return value;
}

function parseToken(text: string, type: string, what: string): CompactJws {
  const jws = text.length > MAX_TOKEN_LENGTH ? undefined : parseCompactJws(text);
  if (jws === undefined) throw invalidAttestationError(`the ${what} is not a JWT`);
  if (jws.header['typ'] !== type) throw invalidAttestationError(`the typ of the ${what} must be ${type}`);
  return jws;
}

/**
 * The key of this installation, which verifies the proof of possession (draft 10 section 4).
 * @throws Failure `invalid_client_attestation` without a usable `cnf.jwk`.
 */
export function instanceKeyOf({ attestation, pop }: ParsedAttestation): PublicJwk {
  const { cnf } = attestation.payload;
  // RFC 7800 section 3.1: these could contain another key; unknown properties are ignored (draft 07 section 5.1)
  const hasJwkOnly = isJsonObject(cnf) && !OTHER_KEYS.some((name) => Object.hasOwn(cnf, name));
  const key = hasJwkOnly ? parsePublicJwk(cnf['jwk']) : undefined;
  if (key === undefined) throw invalidAttestationError('the attestation requires a cnf with a usable jwk and no other key');
  if (pop !== undefined && !matchesKey(pop.header, key))
    throw invalidAttestationError('the alg of the proof of possession does not fit its key');
  return key;
}

/**
 * Validates the claims of both verified tokens (drafts 07 and 10, section 7).
 * @param expected `audience`: the issuer of the authorization server, not the address of an endpoint.
 * @throws Failure `invalid_client_attestation`, `use_fresh_attestation`.
 */
export function assertAttestationClaims(
  { attestation, pop }: ParsedAttestation,
  instanceKey: PublicJwk,
  expected: {
    readonly audience: string;
    readonly now: Date;
    readonly clientId: string | undefined;
    /** Limit in seconds; an older attestation must be renewed although it has not expired. */
    readonly maxAgeSeconds?: number;
    /** True if both tokens need `iss`, as in draft 07, which HAIP 1.0 references. */
    readonly issuerRequired?: boolean;
  },
): VerifiedAttestation {
  const now = expected.now.getTime() / 1000;
  const { sub, exp, iat, iss } = attestation.payload;
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_CLIENT_ID_LENGTH) {
    throw invalidAttestationError('sub of the attestation is missing or too long');
  }
  // Draft 07 section 5.1
  if (expected.issuerRequired === true && (typeof iss !== 'string' || iss === ''))
    throw invalidAttestationError('iss of the attestation is missing');
  if (expected.issuerRequired === true && pop?.payload['iss'] === undefined)
    throw invalidAttestationError('iss of the proof of possession is missing');
  // Draft 10 section 4
  if (typeof exp !== 'number' || exp <= now - CLOCK_TOLERANCE_SECONDS) throw invalidAttestationError('the attestation has expired');
  if (!isAlreadyValid(attestation.payload, now)) throw invalidAttestationError('the attestation is not valid yet');
  if (iat !== undefined && (typeof iat !== 'number' || iat > now + CLOCK_TOLERANCE_SECONDS)) {
    throw invalidAttestationError('iat of the attestation is in the future');
  }
  // OpenID4VCI 1.0 appendix E: the client is the subject of the attestation
  if (expected.clientId !== undefined && expected.clientId !== sub)
    throw invalidAttestationError('client_id is not the subject of the attestation');
  const { maxAgeSeconds } = expected;
  // Draft 10 section 7.4: the age of an attestation without `iat` is unknown
  if (maxAgeSeconds !== undefined && (iat === undefined || iat < now - maxAgeSeconds)) {
    throw new Failure('use_fresh_attestation', 'the attestation is too old');
  }
  const instance = thumbprint(instanceKey);
  if (pop === undefined) return { clientId: sub, instance };
  const { jti, iat: issuedAt, challenge } = assertPopClaims(pop, sub, expected.audience, now);
  return {
    clientId: sub,
    instance,
    proof: {
      hash: hash('sha256', `${instance} ${jti}`, 'base64url'),
      expiresAt: new Date((issuedAt + POP_PAST_SECONDS + CLOCK_TOLERANCE_SECONDS) * 1000),
      challenge,
    },
  };
}

/** RFC 7519 section 4.1.5; a value that is no time is rejected. */
function isAlreadyValid({ nbf }: JsonObject, now: number): boolean {
  return nbf === undefined || (typeof nbf === 'number' && nbf <= now + CLOCK_TOLERANCE_SECONDS);
}

function assertPopClaims(pop: CompactJws, subject: string, audience: string, now: number) {
  const { aud, jti, iat, iss, challenge, exp } = pop.payload;
  // Draft 10 section 5.1: the issuer as a string; an array with one element is equivalent
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (audiences.length !== 1 || audiences[0] !== audience)
    throw invalidAttestationError('aud of the proof of possession is not this authorization server');
  // Draft 07 section 5.2
  if (iss !== undefined && iss !== subject) throw invalidAttestationError('iss of the proof of possession is not the client');
  // Draft 10 section 9.7: checked before the identifier is looked up
  if (typeof iat !== 'number' || iat < now - POP_PAST_SECONDS || iat > now + CLOCK_TOLERANCE_SECONDS) {
    throw invalidAttestationError('iat of the proof of possession is missing or outside the accepted window');
  }
  if (!isAlreadyValid(pop.payload, now)) throw invalidAttestationError('the proof of possession is not valid yet');
  if (exp !== undefined && (typeof exp !== 'number' || exp <= now - CLOCK_TOLERANCE_SECONDS)) {
    throw invalidAttestationError('the proof of possession has expired');
  }
  if (typeof jti !== 'string' || jti === '' || jti.length > MAX_JTI_LENGTH) {
    throw invalidAttestationError('jti of the proof of possession is missing or too long');
  }
  // A challenge that is not a string is invalid, not absent.
  return { jti, iat, challenge: challenge === undefined || typeof challenge === 'string' ? challenge : '' };
}
