import { createPrivateKey, createPublicKey, type JsonWebKey, type KeyObject, sign, verify } from 'node:crypto';
import type { PrivateKeyMaterial } from '../../application/ports/kms.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { algorithmOf, type PublicJwk, parsePublicJwk, type SigningAlgorithm, thumbprint } from '../../domain/shared/jwk.ts';

type PrivateKey = { readonly key: KeyObject; readonly publicJwk: PublicJwk; readonly algorithm: SigningAlgorithm };

/**
 * Reads a private key for P-256, P-384, P-521 or Ed25519.
 * @throws Failure `invalid_input` for any other key, and when its two halves do not belong together.
 */
export function parsePrivateKey(material: PrivateKeyMaterial): PrivateKey {
  const key = parse(material);
  const publicJwk = key === undefined ? undefined : parsePublicJwk(createPublicKey(key).export({ format: 'jwk' }));
  const algorithm = publicJwk === undefined ? undefined : algorithmOf(publicJwk);
  if (key === undefined || publicJwk === undefined || algorithm === undefined) {
    throw new Failure('invalid_input', 'Give a private key on P-256, P-384, P-521 or Ed25519.');
  }
  if (!halvesMatch(key) || !isStated(publicJwk, material)) throw new Failure('invalid_input', 'The public half of the key is not its own.');
  return { key, publicJwk, algorithm };
}

/** The public half of a key that we made ourselves. */
export function publicHalf(key: KeyObject): PublicJwk {
  const publicJwk = parsePublicJwk(createPublicKey(key).export({ format: 'jwk' }));
  if (publicJwk === undefined) throw new Error('Made a key that is no signature key.');
  return publicJwk;
}

function parse(material: PrivateKeyMaterial): KeyObject | undefined {
  try {
    return material instanceof Uint8Array
      ? createPrivateKey({ key: Buffer.from(material), format: 'der', type: 'pkcs8' })
      : createPrivateKey({ key: material as JsonWebKey, format: 'jwk' });
  } catch {
    // The parser's message may quote the key.
    return undefined;
  }
}

/** A JWK for Ed25519 states a public half, too, which the parser passes over to make its own. */
function isStated(publicJwk: PublicJwk, material: PrivateKeyMaterial): boolean {
  if (material instanceof Uint8Array) return true;
  const { d: _d, ...rest } = material;
  const stated = parsePublicJwk(rest);
  return stated !== undefined && thumbprint(stated) === thumbprint(publicJwk);
}

/** Both formats carry the public half of an EC key beside the private one, and nothing forces them to agree. */
function halvesMatch(key: KeyObject): boolean {
  const probe = Buffer.from('vidimus');
  const hash = key.asymmetricKeyType === 'ec' ? 'sha256' : null;
  return verify(hash, probe, createPublicKey(key), sign(hash, probe, key));
}
