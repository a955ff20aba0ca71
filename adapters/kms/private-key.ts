import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject, sign, verify } from 'node:crypto';
import type { PrivateKeyMaterial } from '../../application/ports/kms.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { algorithmOf, type PublicJwk, parsePublicJwk, type SigningAlgorithm, thumbprint } from '../../domain/shared/jwk.ts';

type PrivateKey = { readonly key: KeyObject; readonly publicJwk: PublicJwk; readonly algorithm: SigningAlgorithm };

/**
 * Parses a private key for P-256, P-384, P-521 or Ed25519.
 * @throws Failure `invalid_input` for any other key, and if its two halves do not match.
 */
export function parsePrivateKey(material: PrivateKeyMaterial): PrivateKey {
  const key = parse(material);
  const publicJwk = key === undefined ? undefined : parsePublicJwk(createPublicKey(key).export({ format: 'jwk' }));
  const algorithm = publicJwk === undefined ? undefined : algorithmOf(publicJwk);
  if (key === undefined || publicJwk === undefined || algorithm === undefined) {
    throw new Failure('invalid_input', 'Send a private key on P-256, P-384, P-521 or Ed25519.');
  }
  if (!halvesMatch(key) || !isStated(publicJwk, material))
    throw new Failure('invalid_input', 'The public key does not match the private key.');
  return { key, publicJwk, algorithm };
}

/** Public half of a key that this service generated. */
export function publicHalf(key: KeyObject): PublicJwk {
  const publicJwk = parsePublicJwk(createPublicKey(key).export({ format: 'jwk' }));
  if (publicJwk === undefined) throw new Error('The created key is not a signature key.');
  return publicJwk;
}

function parse(material: PrivateKeyMaterial): KeyObject | undefined {
  try {
    return material instanceof Uint8Array
      ? createPrivateKey({ key: Buffer.from(material), format: 'der', type: 'pkcs8' })
      : createPrivateKey({ key: material as JsonWebKey, format: 'jwk' });
  } catch {
    // The message of the parser may quote the key.
    return undefined;
  }
}

/** A JWK for Ed25519 states its public half, too, which the parser ignores and computes itself. */
function isStated(publicJwk: PublicJwk, material: PrivateKeyMaterial): boolean {
  if (material instanceof Uint8Array) return true;
  const { d: _d, ...publicProperties } = material;
  const stated = parsePublicJwk(publicProperties);
  return stated !== undefined && thumbprint(stated) === thumbprint(publicJwk);
}

/** Both formats carry the public half of an EC key beside the private one, and the two may be inconsistent. */
function halvesMatch(key: KeyObject): boolean {
  const probe = Buffer.from('vidimus');
  const hash = key.asymmetricKeyType === 'ec' ? 'sha256' : null;
  return verify(hash, probe, createPublicKey(key), sign(hash, probe, key));
}
