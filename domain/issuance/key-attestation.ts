import { type CompactJws, parseAlgorithm, parseCompactJws, parseX5c } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, isStringArray, type Json, type JsonObject, MAX_UNTRUSTED_PROPERTIES } from '../shared/json.ts';
import { isOnCurve, type PublicJwk, parsePublicJwk, SIGNING_ALGORITHMS, type SigningAlgorithm, thumbprint } from '../shared/jwk.ts';
import type { CredentialConfigurationBody } from './configuration.ts';

export const KEY_ATTESTATION_TYPE = 'key-attestation+jwt';
/** Limit in characters. */
export const MAX_ATTESTATION_LENGTH = 48 * 1024;
/** Equals the largest batch. */
const MAX_KEYS = 100;

const invalidProofError = (message: string) => new Failure('invalid_proof', message);

type AttestedKey = { readonly key: PublicJwk; readonly kid: Json | undefined };

/** A parsed key attestation; its content is not trusted before its signature is verified. */
export type ParsedKeyAttestation = {
  readonly jws: CompactJws;
  readonly algorithm: SigningAlgorithm;
  /** `x5c`: DER in standard base64, leaf first; undefined when the issuer's key is identified differently. */
  readonly chain: readonly string[] | undefined;
  /** Keys by RFC 7638 thumbprint, in the order of the attestation. */
  readonly keys: ReadonlyMap<string, AttestedKey>;
};

/** Levels that a configuration requires of attested keys; null requires a valid attestation only. */
export type RequiredLevels = CredentialConfigurationBody['keyAttestationsRequired'];

/**
 * Key attestations of one request: each is parsed once, and together they have at most as many keys as the largest batch. Proofs may share
 * one attestation or each carry another one.
 */
export class KeyAttestationCache {
  readonly #attestations = new Map<string, ParsedKeyAttestation>();
  #remainingKeys = MAX_KEYS;

  /** @throws Failure `invalid_proof`. */
  parse(text: string): ParsedKeyAttestation {
    const cachedAttestation = this.#attestations.get(text);
    if (cachedAttestation !== undefined) return cachedAttestation;
    const attestation = parseKeyAttestation(text, this.#remainingKeys);
    this.#remainingKeys -= attestation.keys.size;
    this.#attestations.set(text, attestation);
    return attestation;
  }
}

/**
 * Parses a key attestation (OpenID4VCI 1.0 appendix D.1).
 * @param maxKeys is checked before any key is parsed.
 * @throws Failure `invalid_proof`.
 */
export function parseKeyAttestation(text: string, maxKeys = MAX_KEYS): ParsedKeyAttestation {
  const jws = parseCompactJws(text, { length: MAX_ATTESTATION_LENGTH, members: MAX_UNTRUSTED_PROPERTIES });
  if (jws === undefined) throw invalidProofError('the key attestation is not a JWT');
  // OpenID4VCI 1.0 appendix D.1
  if (jws.header['typ'] !== KEY_ATTESTATION_TYPE) throw invalidProofError(`the typ of the key attestation must be ${KEY_ATTESTATION_TYPE}`);
  const verdict = parseAlgorithm(jws.header, SIGNING_ALGORITHMS);
  // OpenID4VCI 1.0 appendix F.1: one of the published algorithms, like the alg of a proof
  if (verdict.fault !== undefined) throw invalidProofError('the alg of the key attestation is not supported');
  return { jws, algorithm: verdict.algorithm, chain: parseX5c(jws.header), keys: attestedKeys(jws.payload['attested_keys'], maxKeys) };
}

function attestedKeys(value: Json | undefined, maxKeys: number): ReadonlyMap<string, AttestedKey> {
  // OpenID4VCI 1.0 appendix D.1
  if (!Array.isArray(value) || value.length === 0 || value.length > maxKeys) {
    throw invalidProofError(`attested_keys must be an array of keys, 1 to ${MAX_KEYS} in all attestations of a request`);
  }
  const keys = new Map<string, AttestedKey>();
  for (const entry of value as readonly Json[]) {
    const key = parsePublicJwk(entry);
    if (key === undefined || !isOnCurve(key)) throw invalidProofError('each of attested_keys must be a public EC or OKP key');
    const name = thumbprint(key);
    if (keys.has(name)) throw invalidProofError('a key is listed twice in attested_keys');
    keys.set(name, { key, kid: isJsonObject(entry) ? entry['kid'] : undefined });
  }
  return keys;
}

const INDEX = /^(0|[1-9]\d?)$/;

/**
 * The attested key that a proof identifies by `kid`: the key's own `kid`, its thumbprint, or its index in the array. OpenID4VCI 1.0
 * appendix F.1 leaves the form open, and wallets use all three.
 */
export function attestedKey({ keys }: ParsedKeyAttestation, kid: string): PublicJwk | undefined {
  const entries = [...keys.values()];
  const matches = entries.filter((entry) => entry.kid === kid);
  if (matches.length > 0) return matches.length === 1 ? matches[0]?.key : undefined;
  return keys.get(kid)?.key ?? (INDEX.test(kid) ? entries[Number(kid)]?.key : undefined);
}

/** The key at index 0 signs a proof that has neither `jwk` nor `kid`. */
export function firstKey({ keys }: ParsedKeyAttestation): PublicJwk {
  const [entry] = keys.values();
  if (entry === undefined) throw invalidProofError('attested_keys is empty');
  return entry.key;
}

/**
 * Validates the claims of a verified attestation. The freshness of its nonce and its revocation are checked elsewhere.
 * @param expected `proofType`: a `jwt` proof has its own nonce, so the attestation in its header needs none and may be created in advance,
 * but has to expire. The proof type `attestation` needs a nonce and no expiry.
 * @returns its nonce, if it has one.
 * @throws Failure `invalid_proof`.
 */
export function assertKeyAttestationClaims(
  payload: JsonObject,
  expected: { readonly proofType: 'jwt' | 'attestation'; readonly levels: RequiredLevels | undefined; readonly now: Date },
): string | undefined {
  const { iat, exp, nbf, nonce } = payload;
  const now = expected.now.getTime() / 1000;
  const isInProof = expected.proofType === 'jwt';
  // OpenID4VCI 1.0 appendix D.1
  if (typeof iat !== 'number' || iat > now + CLOCK_TOLERANCE_SECONDS) {
    throw invalidProofError('iat of the key attestation is missing or in the future');
  }
  if (nbf !== undefined && (typeof nbf !== 'number' || nbf > now + CLOCK_TOLERANCE_SECONDS)) {
    throw invalidProofError('the key attestation is not valid yet');
  }
  // OpenID4VCI 1.0 appendix D.1: required in a proof of type jwt
  if (exp === undefined ? isInProof : typeof exp !== 'number' || exp <= now - CLOCK_TOLERANCE_SECONDS) {
    throw invalidProofError('the key attestation has expired or has no exp');
  }
  for (const level of ['key_storage', 'user_authentication'] as const) assertLevel(level, payload[level], expected.levels?.[level]);
  if (nonce === undefined && isInProof) return undefined;
  // OpenID4VCI 1.0 appendix F.3: there is a nonce endpoint
  if (typeof nonce !== 'string' || nonce === '')
    throw invalidProofError('the key attestation has no nonce; get one from the nonce endpoint');
  return nonce;
}

/** OpenID4VCI 1.0 section 12.2.4: one of the published values; no value implies another one. */
function assertLevel(name: string, value: Json | undefined, requiredLevels: readonly string[] | undefined): void {
  const isList = isStringArray(value) && value.length > 0;
  if (value !== undefined && !isList) throw invalidProofError(`${name} must be a non-empty array of strings`);
  if (requiredLevels !== undefined && !(isList && requiredLevels.some((level) => value.includes(level)))) {
    throw invalidProofError(`${name} of the key attestation contains none of the levels that this credential requires`);
  }
}
