import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { countPemMarkers } from '../../domain/formats/der/pem.ts';
import { defined } from '../../domain/shared/defined.ts';
import { invalidInput } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { algorithmOf, type PublicJwk, parsePublicJwk, type SigningAlgorithm, thumbprint } from '../../domain/shared/jwk.ts';
import { valueOrUndefined } from '../../domain/shared/value-or-undefined.ts';

const WANTED = 'Give a private key on P-256, P-384, P-521 or Ed25519';
/** RFC 7468 section 2 */
const BLOCK = /^-----BEGIN ([A-Z0-9 ]{1,40})-----$/gm;

/** What is said of texts that are no such key, by the label of their PEM block. */
const REFUSED_LABELS: Readonly<Record<string, string>> = {
  'ENCRYPTED PRIVATE KEY': 'The key is encrypted. Decrypt it first; it is sealed again here.',
  'RSA PRIVATE KEY': `${WANTED}, not an RSA key.`,
  'DSA PRIVATE KEY': `${WANTED}, not a DSA key.`,
  'OPENSSH PRIVATE KEY': `${WANTED}, in PKCS#8 or SEC1 and not in the format of OpenSSH.`,
  'PUBLIC KEY': `${WANTED}; this is a public one.`,
  CERTIFICATE: `${WANTED}; this is a certificate.`,
};

export type ImportedKey = {
  /** DER of a PKCS#8 structure (RFC 5958). The caller overwrites it when it is done. */
  readonly pkcs8: Buffer;
  /** The public half; on curves where the key states it, the KMS looks whether it is its own. */
  readonly publicJwk: PublicJwk;
  readonly algorithm: SigningAlgorithm;
};

/**
 * Reads a private key that somebody brings: PEM with PKCS#8 (RFC 5958) or SEC1 (RFC 5915), or a JWK (RFC 7517).
 * @throws Failure `invalid_input` at `key`. No message quotes the key.
 */
export function parsePrivateKey(input: string | JsonObject): ImportedKey {
  const key = typeof input === 'string' ? fromPem(input) : fromJwk(input);
  const type = key.asymmetricKeyType;
  if (type === 'rsa' || type === 'rsa-pss' || type === 'dsa') throw refused(`${WANTED}, not an RSA key.`);
  const publicJwk = publicHalf(key);
  const algorithm = publicJwk && algorithmOf(publicJwk);
  if (publicJwk === undefined || algorithm === undefined) throw refused(`${WANTED}; its curve is another one.`);
  return { pkcs8: key.export({ format: 'der', type: 'pkcs8' }), publicJwk, algorithm };
}

function fromPem(text: string): KeyObject {
  const labels = [...text.matchAll(BLOCK)].map(([, label = '']) => label);
  // OpenSSL writes the curve before a SEC1 key; the key names it itself.
  const [label, ...more] = labels.filter((name) => name !== 'EC PARAMETERS');
  if (label === undefined) throw refused(`${WANTED} as PEM or JWK.`);
  const message = REFUSED_LABELS[label];
  if (message !== undefined) throw refused(message);
  if (more.length > 0) throw refused('Give one key and nothing else; certificates have a member of their own.');
  // Text around the block is ignored (RFC 7468 section 2), and a second block with a misspelt marker is not.
  if (countPemMarkers(text) !== 2 * labels.length) throw refused(`${WANTED} as PEM; a marker of a block is misspelt or missing.`);
  // RFC 1421 section 4.6.1.1, which the former formats of OpenSSL use
  if (text.includes('Proc-Type: 4,ENCRYPTED')) throw refused(REFUSED_LABELS['ENCRYPTED PRIVATE KEY'] ?? '');
  return parse(() => createPrivateKey({ key: text, format: 'pem' }), `${WANTED} as PEM; this one is broken.`);
}

function fromJwk({ kty, crv, x, y, d, use, alg }: JsonObject): KeyObject {
  if (kty === 'RSA') throw refused(`${WANTED}, not an RSA key.`);
  if (kty !== 'EC' && kty !== 'OKP') throw refused(`${WANTED}: "kty" is "EC" or "OKP".`);
  if (d === undefined) throw refused(`${WANTED}; this is a public one, without "d".`);
  if (use !== undefined && use !== 'sig') throw refused('The key is for something else: "use" is not "sig".');
  const publicJwk = parsePublicJwk({ kty, crv, x, ...defined({ y }) });
  if (publicJwk === undefined) throw refused(`${WANTED}; its curve or its coordinates are others.`);
  // RFC 7518 section 3.1; RFC 9864 gives EdDSA on this curve a name of its own.
  const names = publicJwk.crv === 'Ed25519' ? ['EdDSA', 'Ed25519'] : [algorithmOf(publicJwk)];
  if (alg !== undefined && !names.includes(alg as SigningAlgorithm)) throw refused('"alg" is not that of the key.');
  // RFC 7518 section 6.2.2.1, RFC 8037 section 2: as long as a coordinate. The parser takes longer ones and makes no key of them.
  if (typeof d !== 'string' || d.length > publicJwk.x.length) throw refused(`${WANTED} as JWK; this one is broken.`);
  const jwk = { ...publicJwk, d } as JsonWebKey;
  const key = parse(() => createPrivateKey({ key: jwk, format: 'jwk' }), `${WANTED} as JWK; this one is broken.`);
  // For Ed25519 the parser passes the stated half over and makes its own.
  const own = publicHalf(key);
  if (own === undefined || thumbprint(own) !== thumbprint(publicJwk)) throw refused('The public half of the key is not its own.');
  return key;
}

/** The parser's own messages may quote the key. */
function parse(read: () => KeyObject, message: string): KeyObject {
  try {
    return read();
  } catch {
    throw refused(message);
  }
}

/** @returns undefined for a curve that no JWK can have. */
function publicHalf(key: KeyObject): PublicJwk | undefined {
  return valueOrUndefined(() => parsePublicJwk(createPublicKey(key).export({ format: 'jwk' })));
}

function refused(message: string): Error {
  return invalidInput('key', message);
}
