import { type KeyObject, verify } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { Signatures } from '../../application/ports/signatures.ts';
import { boundedBytes } from '../../application/tenant-cache/cache-memory.ts';
import { derSignature } from '../../domain/formats/der/ecdsa-signature.ts';
import { curveOf, type PublicJwk, publicKeyOf } from '../../domain/shared/jwk.ts';
import { valueOrUndefined } from '../../domain/shared/value-or-undefined.ts';

const MAX_KEY_BYTES = 14 * 1024 * 1024;
/** Memory of one key in the library. */
const KEY_BYTES = 1_500;

/** Verifies with node:crypto, synchronously; importing a key is expensive, so repeatedly used keys are cached. */
export class NodeSignatures extends Signatures {
  readonly #keys = new LRUCache<string, KeyObject>(boundedBytes<KeyObject>(MAX_KEY_BYTES, () => KEY_BYTES));

  override verify(key: PublicJwk, data: Uint8Array | string, signature: Uint8Array, usage: 'once' | 'often' = 'often'): boolean {
    const curve = curveOf(key.crv);
    // RFC 7518 section 3.4: r and s always have the length of the curve. RFC 8037 section 3.1: so they do on Ed25519.
    if (curve === undefined || signature.length !== 2 * curve.bytes) return false;
    const imported = usage === 'once' ? publicKeyOf(key) : this.#import(key);
    if (imported === undefined) return false;
    const bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : data;
    // With options beside the key, or another signature format, Node takes half as long again.
    const form = curve.kty === 'OKP' ? signature : derSignature(signature);
    return valueOrUndefined(() => verify(curve.hash, bytes, imported, form)) ?? false;
  }

  #import(key: PublicJwk): KeyObject | undefined {
    const { kty, crv, x, y } = key;
    const name = `${kty} ${crv} ${x} ${y ?? ''}`;
    const cached = this.#keys.get(name);
    if (cached !== undefined) return cached;
    const createdKey = publicKeyOf(key);
    if (createdKey !== undefined) this.#keys.set(name, createdKey);
    return createdKey;
  }
}
