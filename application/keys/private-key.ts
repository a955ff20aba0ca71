import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { countPemMarkers } from '../../domain/formats/der/pem.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, type PublicJwk, parsePublicJwk, type SigningAlgorithm, thumbprint } from '../../domain/shared/jwk.ts';
import { valueOrUndefined } from '../../domain/shared/value-or-undefined.ts';

const EXPECTED_KEY = 'Send a private key on P-256, P-384, P-521 or Ed25519';
/** RFC 7468 section 2 */
const BLOCK = /^-----BEGIN ([A-Z0-9 ]{1,40})-----$/gm;

/** Messages for texts that are not a supported key, by the label of their PEM block. */
const UNSUPPORTED_LABELS: Readonly<Record<string, string>> = {
  'ENCRYPTED PRIVATE KEY': 'The key is encrypted. Decrypt it first; it is sealed again here.',
  'RSA PRIVATE KEY': `${EXPECTED_KEY}, not an RSA key.`,
  'DSA PRIVATE KEY': `${EXPECTED_KEY}, not a DSA key.`,
  'OPENSSH PRIVATE KEY': `${EXPECTED_KEY}, in PKCS#8 or SEC1 and not in the format of OpenSSH.`,
  'PUBLIC KEY': `${EXPECTED_KEY}; this is a public key.`,
  CERTIFICATE: `${EXPECTED_KEY}; this is a certificate.`,
};

export type ImportedKey = {
  /** DER of a PKCS#8 structure (RFC 5958). The caller overwrites it when it is done. */
  readonly pkcs8: Buffer;
  /** The public half; if the key states it, the KMS verifies it. */
  readonly publicJwk: PublicJwk;
  readonly algorithm: SigningAlgorithm;
};

/**
 * Parses an imported private key: PEM with PKCS#8 (RFC 5958) or SEC1 (RFC 5915), or a JWK (RFC 7517).
 * @throws Failure `invalid_input` at `key`. No message quotes the key.
 */
export function parsePrivateKey(input: string | JsonObject): ImportedKey {
  const key = typeof input === 'string' ? fromPem(input) : fromJwk(input);
  const type = key.asymmetricKeyType;
  if (type === 'rsa' || type === 'rsa-pss' || type === 'dsa') throw invalidKeyError(`${EXPECTED_KEY}, not an RSA key.`);
  const publicJwk = publicHalf(key);
  const algorithm = publicJwk && algorithmOf(publicJwk);
  if (publicJwk === undefined || algorithm === undefined) throw invalidKeyError(`${EXPECTED_KEY}; its curve is not supported.`);
  return { pkcs8: key.export({ format: 'der', type: 'pkcs8' }), publicJwk, algorithm };
}

function fromPem(text: string): KeyObject {
  const labels = [...text.matchAll(BLOCK)].map(([, label = '']) => label);
  // OpenSSL writes a separate block with the curve before a SEC1 key.
  const [label, ...otherLabels] = labels.filter((name) => name !== 'EC PARAMETERS');
  if (label === undefined) throw invalidKeyError(`${EXPECTED_KEY} as PEM or JWK.`);
  const message = UNSUPPORTED_LABELS[label];
  if (message !== undefined) throw invalidKeyError(message);
  if (otherLabels.length > 0) throw invalidKeyError('Send only one key; certificates have a separate property.');
  // Text around the block is ignored (RFC 7468 section 2), but a second block with a misspelt marker is not.
  if (countPemMarkers(text) !== 2 * labels.length)
    throw invalidKeyError(`${EXPECTED_KEY} as PEM; a BEGIN or END line is invalid or missing.`);
  // RFC 1421 section 4.6.1.1, which the former formats of OpenSSL use
  if (text.includes('Proc-Type: 4,ENCRYPTED')) throw invalidKeyError(UNSUPPORTED_LABELS['ENCRYPTED PRIVATE KEY'] ?? '');
  return parse(() => createPrivateKey({ key: text, format: 'pem' }), `${EXPECTED_KEY} as PEM; this key is malformed.`);
}

function fromJwk({ kty, crv, x, y, d, use, alg }: JsonObject): KeyObject {
  if (kty === 'RSA') throw invalidKeyError(`${EXPECTED_KEY}, not an RSA key.`);
  if (kty !== 'EC' && kty !== 'OKP') throw invalidKeyError(`${EXPECTED_KEY}: "kty" is "EC" or "OKP".`);
  if (d === undefined) throw invalidKeyError(`${EXPECTED_KEY}; this is a public key, without "d".`);
  if (use !== undefined && use !== 'sig') throw invalidKeyError('The key has another use: "use" is not "sig".');
  const publicJwk = parsePublicJwk({ kty, crv, x, ...defined({ y }) });
  if (publicJwk === undefined) throw invalidKeyError(`${EXPECTED_KEY}; its curve or its coordinates are invalid.`);
  // RFC 7518 section 3.1; RFC 9864 gives EdDSA on this curve a name of its own.
  const names = publicJwk.crv === 'Ed25519' ? ['EdDSA', 'Ed25519'] : [algorithmOf(publicJwk)];
  if (alg !== undefined && !names.includes(alg as SigningAlgorithm)) throw invalidKeyError('"alg" does not match the key.');
  // RFC 7518 section 6.2.2.1, RFC 8037 section 2: as long as a coordinate. The parser accepts longer values and yields no key for them.
  if (typeof d !== 'string' || d.length > publicJwk.x.length) throw invalidKeyError(`${EXPECTED_KEY} as JWK; this key is malformed.`);
  const jwk = { ...publicJwk, d } as JsonWebKey;
  const key = parse(() => createPrivateKey({ key: jwk, format: 'jwk' }), `${EXPECTED_KEY} as JWK; this key is malformed.`);
  // For Ed25519 the parser ignores the stated public half and derives its own.
  const derived = publicHalf(key);
  if (derived === undefined || thumbprint(derived) !== thumbprint(publicJwk))
    throw invalidKeyError('The public key does not match the private key.');
  return key;
}

/** The messages of the parser may quote the key, so they are replaced. */
function parse(read: () => KeyObject, message: string): KeyObject {
  try {
    return read();
  } catch {
    throw invalidKeyError(message);
  }
}

/** @returns undefined for a curve without a JWK representation. */
function publicHalf(key: KeyObject): PublicJwk | undefined {
  return valueOrUndefined(() => parsePublicJwk(createPublicKey(key).export({ format: 'jwk' })));
}

function invalidKeyError(message: string): Error {
  return invalidInput('key', message);
}
