import { hash } from 'node:crypto';
import { type CompactJws, fitsKey, parseCompactJws } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, type JsonObject } from '../shared/json.ts';
import { type PublicJwk, parsePublicJwk, thumbprint } from '../shared/jwk.ts';

/**
 * Attestation-based client authentication, in the two published shapes: drafts 07 (pinned by OpenID4VCI 1.0) and 10,
 * which dropped `iss` from both tokens. What a shape does not require is checked when it is there.
 */
export const ATTESTATION_TYPE = 'oauth-client-attestation+jwt';
export const POP_TYPE = 'oauth-client-attestation-pop+jwt';

const MAX_TOKEN_LENGTH = 16_384;
const POP_PAST_SECONDS = 300;
const MAX_JTI_LENGTH = 256;
const MAX_CLIENT_ID_LENGTH = 500;

/** Members of `cnf` that bring a key, or lead to one (RFC 7800 section 3). */
const OTHER_KEYS = ['jwe', 'jku'] as const;

const refused = (message: string) => new Failure('invalid_client_attestation', message);

/** Both tokens taken apart; nothing they say is to be believed before their signatures are checked. */
export type OpenedAttestation = {
  readonly attestation: CompactJws;
  /** Absent where the DPoP proof of the request takes its place (draft 10 section 5.2). */
  readonly pop?: CompactJws;
};

export type AcceptedAttestation = {
  /** `sub`: the wallet product, shared by all its installations (OpenID4VCI 1.0 section 15.4.4). */
  readonly clientId: string;
  /** RFC 7638 thumbprint of the key of this installation. */
  readonly instance: string;
  /** Absent where the DPoP proof takes its place. */
  readonly proof?: {
    /** Names the proof of possession, to be remembered until `expiresAt`. */
    readonly hash: string;
    readonly expiresAt: Date;
    readonly challenge: string | undefined;
  };
};

/**
 * @param attestations every `OAuth-Client-Attestation` header field as it came; `pops` likewise.
 * @param mayCombine whether there is a DPoP proof, which may take the place of the proof of possession.
 * @returns undefined when neither header is there.
 * @throws Failure `invalid_client_attestation` when one is missing, repeated, or not the right kind of JWT.
 */
export function parseAttestation(
  attestations: readonly string[],
  pops: readonly string[],
  mayCombine = false,
): OpenedAttestation | undefined {
  if (attestations.length === 0 && pops.length === 0) return undefined;
  // Attestation-based client authentication (draft 10) section 7.1: exactly one field each
  const attestation = only(attestations, 'OAuth-Client-Attestation');
  // Draft 10 section 7: without this header a DPoP proof is the proof
  if (pops.length === 0 && mayCombine) return { attestation: parseToken(attestation, ATTESTATION_TYPE, 'attestation') };
  const pop = only(pops, 'OAuth-Client-Attestation-PoP');
  return {
    attestation: parseToken(attestation, ATTESTATION_TYPE, 'attestation'),
    pop: parseToken(pop, POP_TYPE, 'proof of possession'),
  };
}

function only(values: readonly string[], name: string): string {
  const [value] = values;
  if (value === undefined || values.length > 1 || value.includes(',')) throw refused(`send exactly one ${name} header`);
  return value;
}

function parseToken(text: string, type: string, what: string): CompactJws {
  const jws = text.length > MAX_TOKEN_LENGTH ? undefined : parseCompactJws(text);
  if (jws === undefined) throw refused(`the ${what} is not a JWT`);
  if (jws.header['typ'] !== type) throw refused(`the typ of the ${what} must be ${type}`);
  return jws;
}

/**
 * The key of this installation, with which the proof of possession has to verify (draft 10 section 4).
 * @throws Failure `invalid_client_attestation` without a usable `cnf.jwk`.
 */
export function instanceKeyOf({ attestation, pop }: OpenedAttestation): PublicJwk {
  const { cnf } = attestation.payload;
  // RFC 7800 section 3.1: these could name another key; what is not understood is ignored (draft 07 section 5.1)
  const isOnly = isJsonObject(cnf) && !OTHER_KEYS.some((name) => Object.hasOwn(cnf, name));
  const key = isOnly ? parsePublicJwk(cnf['jwk']) : undefined;
  if (key === undefined) throw refused('the attestation needs a cnf with a usable jwk and no other key');
  if (pop !== undefined && !fitsKey(pop.header, key)) throw refused('the alg of the proof of possession does not fit its key');
  return key;
}

/**
 * Judges what the two verified tokens say (drafts 07 and 10, section 7).
 * @param expected `audience`: the issuer of the authorization server itself, not the address of an endpoint.
 * @throws Failure `invalid_client_attestation`, `use_fresh_attestation`.
 */
export function assertAttestationClaims(
  { attestation, pop }: OpenedAttestation,
  instanceKey: PublicJwk,
  expected: {
    readonly audience: string;
    readonly now: Date;
    /** Client id that the request itself names. */
    readonly clientId: string | undefined;
    /** Seconds; an older attestation must be renewed although it has not expired. */
    readonly maxAgeSeconds?: number;
    /** Whether both tokens have to say who made them, as draft 07 has it, which HAIP 1.0 pins. */
    readonly issuerRequired?: boolean;
  },
): AcceptedAttestation {
  const now = expected.now.getTime() / 1000;
  const { sub, exp, iat, iss } = attestation.payload;
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_CLIENT_ID_LENGTH) {
    throw refused('sub of the attestation is missing or too long');
  }
  // Draft 07 section 5.1
  if (expected.issuerRequired === true && (typeof iss !== 'string' || iss === '')) throw refused('iss of the attestation is missing');
  if (expected.issuerRequired === true && pop?.payload['iss'] === undefined) throw refused('iss of the proof of possession is missing');
  // Draft 10 section 4
  if (typeof exp !== 'number' || exp <= now - CLOCK_TOLERANCE_SECONDS) throw refused('the attestation has expired');
  if (!hasBegun(attestation.payload, now)) throw refused('the attestation is not valid yet');
  if (iat !== undefined && (typeof iat !== 'number' || iat > now + CLOCK_TOLERANCE_SECONDS)) {
    throw refused('the attestation comes from the future');
  }
  // OpenID4VCI 1.0 appendix E: the client is whom the attestation is about
  if (expected.clientId !== undefined && expected.clientId !== sub) throw refused('client_id is not the subject of the attestation');
  const { maxAgeSeconds } = expected;
  // Draft 10 section 7.4: one that does not tell its age may be of any
  if (maxAgeSeconds !== undefined && (iat === undefined || iat < now - maxAgeSeconds)) {
    throw new Failure('use_fresh_attestation', 'the attestation is too old');
  }
  const instance = thumbprint(instanceKey);
  if (pop === undefined) return { clientId: sub, instance };
  const { jti, iat: madeAt, challenge } = assertPopClaims(pop, sub, expected.audience, now);
  return {
    clientId: sub,
    instance,
    proof: {
      hash: hash('sha256', `${instance} ${jti}`, 'base64url'),
      expiresAt: new Date((madeAt + POP_PAST_SECONDS + CLOCK_TOLERANCE_SECONDS) * 1000),
      challenge,
    },
  };
}

/** RFC 7519 section 4.1.5; a time that is none is not passed over. */
function hasBegun({ nbf }: JsonObject, now: number): boolean {
  return nbf === undefined || (typeof nbf === 'number' && nbf <= now + CLOCK_TOLERANCE_SECONDS);
}

function assertPopClaims(pop: CompactJws, subject: string, audience: string, now: number) {
  const { aud, jti, iat, iss, challenge, exp } = pop.payload;
  // Draft 10 section 5.1: the issuer as a string; one element in an array says the same
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (audiences.length !== 1 || audiences[0] !== audience) throw refused('aud of the proof of possession is not this authorization server');
  // Draft 07 section 5.2
  if (iss !== undefined && iss !== subject) throw refused('iss of the proof of possession is not the client');
  // Draft 10 section 9.7: before the identifier is looked up
  if (typeof iat !== 'number' || iat < now - POP_PAST_SECONDS || iat > now + CLOCK_TOLERANCE_SECONDS) {
    throw refused('iat of the proof of possession is missing or outside the accepted window');
  }
  if (!hasBegun(pop.payload, now)) throw refused('the proof of possession is not valid yet');
  if (exp !== undefined && (typeof exp !== 'number' || exp <= now - CLOCK_TOLERANCE_SECONDS)) {
    throw refused('the proof of possession has expired');
  }
  if (typeof jti !== 'string' || jti === '' || jti.length > MAX_JTI_LENGTH) {
    throw refused('jti of the proof of possession is missing or too long');
  }
  // A challenge that is not a string is not one of ours, and not absent either.
  return { jti, iat, challenge: challenge === undefined || typeof challenge === 'string' ? challenge : '' };
}
