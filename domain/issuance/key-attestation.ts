import { type CompactJws, parseAlgorithm, parseCompactJws, parseX5c } from '../formats/jose/compact.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../shared/clock-tolerance.ts';
import { Failure } from '../shared/failure.ts';
import { isJsonObject, isTexts, type Json, type JsonObject, MAX_STRANGER_MEMBERS } from '../shared/json.ts';
import { isOnCurve, type PublicJwk, parsePublicJwk, SIGNING_ALGORITHMS, type SigningAlgorithm, thumbprint } from '../shared/jwk.ts';
import type { CredentialConfigurationBody } from './configuration.ts';

export const KEY_ATTESTATION_TYPE = 'key-attestation+jwt';
/** Longest attestation in characters. */
export const MAX_ATTESTATION_LENGTH = 48 * 1024;
/** As many as the largest batch. */
const MAX_KEYS = 100;

const refused = (message: string) => new Failure('invalid_proof', message);

type Named = { readonly key: PublicJwk; readonly kid: Json | undefined };

/** A key attestation taken apart; nothing it says is to be believed before its signature is checked. */
export type OpenedKeyAttestation = {
  readonly jws: CompactJws;
  readonly algorithm: SigningAlgorithm;
  /** `x5c`: DER in standard base64, leaf first; undefined where the key of its issuer stands elsewhere. */
  readonly chain: readonly string[] | undefined;
  /** By RFC 7638 thumbprint, in the order of the attestation. */
  readonly keys: ReadonlyMap<string, Named>;
};

/** What a configuration asks of attested keys; null for nothing but an attestation that is good. */
export type RequiredLevels = CredentialConfigurationBody['keyAttestationsRequired'];

/**
 * The key attestations of one request: each is taken apart once, and all together have as many keys as the largest batch.
 * Proofs may all carry the same one, or each another one with keys of its own.
 */
export class OpenedKeyAttestations {
  readonly #opened = new Map<string, OpenedKeyAttestation>();
  #keysLeft = MAX_KEYS;

  /** @throws Failure `invalid_proof`. */
  open(text: string): OpenedKeyAttestation {
    const known = this.#opened.get(text);
    if (known !== undefined) return known;
    const opened = parseKeyAttestation(text, this.#keysLeft);
    this.#keysLeft -= opened.keys.size;
    this.#opened.set(text, opened);
    return opened;
  }
}

/**
 * Takes a key attestation apart (OpenID4VCI 1.0 appendix D.1).
 * @param maxKeys that it may have; they are counted before any is looked at.
 * @throws Failure `invalid_proof`.
 */
export function parseKeyAttestation(text: string, maxKeys = MAX_KEYS): OpenedKeyAttestation {
  const jws = parseCompactJws(text, { length: MAX_ATTESTATION_LENGTH, members: MAX_STRANGER_MEMBERS });
  if (jws === undefined) throw refused('the key attestation is not a JWT');
  // OpenID4VCI 1.0 appendix D.1
  if (jws.header['typ'] !== KEY_ATTESTATION_TYPE) throw refused(`the typ of the key attestation must be ${KEY_ATTESTATION_TYPE}`);
  const verdict = parseAlgorithm(jws.header, SIGNING_ALGORITHMS);
  // OpenID4VCI 1.0 appendix F.1: from the published list, as the alg of a proof
  if (verdict.fault !== undefined) throw refused('the alg of the key attestation is not supported');
  return { jws, algorithm: verdict.algorithm, chain: parseX5c(jws.header), keys: attestedKeys(jws.payload['attested_keys'], maxKeys) };
}

function attestedKeys(value: Json | undefined, maxKeys: number): ReadonlyMap<string, Named> {
  // OpenID4VCI 1.0 appendix D.1
  if (!Array.isArray(value) || value.length === 0 || value.length > maxKeys) {
    throw refused(`attested_keys must be an array of keys, 1 to ${MAX_KEYS} in all attestations of a request`);
  }
  const keys = new Map<string, Named>();
  for (const entry of value as readonly Json[]) {
    const key = parsePublicJwk(entry);
    if (key === undefined || !isOnCurve(key)) throw refused('each of attested_keys must be a public EC or OKP key');
    const name = thumbprint(key);
    if (keys.has(name)) throw refused('a key stands twice in attested_keys');
    keys.set(name, { key, kid: isJsonObject(entry) ? entry['kid'] : undefined });
  }
  return keys;
}

const INDEX = /^(0|[1-9]\d?)$/;

/**
 * The attested key that a proof means: by the key's own `kid`, by its thumbprint, or by its place in the array.
 * OpenID4VCI 1.0 appendix F.1 leaves the form open and wallets use all three.
 */
export function attestedKey({ keys }: OpenedKeyAttestation, kid: string): PublicJwk | undefined {
  const all = [...keys.values()];
  const named = all.filter((entry) => entry.kid === kid);
  if (named.length > 0) return named.length === 1 ? named[0]?.key : undefined;
  return keys.get(kid)?.key ?? (INDEX.test(kid) ? all[Number(kid)]?.key : undefined);
}

/** The key at index 0, which signs a proof that identifies its key neither by `jwk` nor by `kid`. */
export function firstKey({ keys }: OpenedKeyAttestation): PublicJwk {
  const [first] = keys.values();
  if (first === undefined) throw refused('attested_keys is empty');
  return first.key;
}

/**
 * Validates the claims of a verified attestation, except whether its nonce is fresh and whether it was revoked.
 * @param expected `proofType`: a `jwt` proof has a nonce of its own, so the attestation in its header needs none and may be made
 *   in advance, but has to expire. The proof type `attestation` needs a nonce and no expiry.
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
    throw refused('iat of the key attestation is missing or in the future');
  }
  if (nbf !== undefined && (typeof nbf !== 'number' || nbf > now + CLOCK_TOLERANCE_SECONDS)) {
    throw refused('the key attestation is not valid yet');
  }
  // OpenID4VCI 1.0 appendix D.1: required in a proof of type jwt
  if (exp === undefined ? isInProof : typeof exp !== 'number' || exp <= now - CLOCK_TOLERANCE_SECONDS) {
    throw refused('the key attestation has expired or does not say when it does');
  }
  for (const level of ['key_storage', 'user_authentication'] as const) assertLevel(level, payload[level], expected.levels?.[level]);
  if (nonce === undefined && isInProof) return undefined;
  // OpenID4VCI 1.0 appendix F.3: there is a nonce endpoint
  if (typeof nonce !== 'string' || nonce === '') throw refused('the key attestation has no nonce; get one from the nonce endpoint');
  return nonce;
}

/** OpenID4VCI 1.0 section 12.2.4: one of the published values; none of them implies another. */
function assertLevel(name: string, value: Json | undefined, wanted: readonly string[] | undefined): void {
  const isList = isTexts(value) && value.length > 0;
  if (value !== undefined && !isList) throw refused(`${name} must be a non-empty array of strings`);
  if (wanted !== undefined && !(isList && wanted.some((one) => value.includes(one)))) {
    throw refused(`${name} of the key attestation names none of the levels that this credential needs`);
  }
}
