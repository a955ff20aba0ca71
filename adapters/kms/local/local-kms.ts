import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Cipher } from '../../../application/ports/cipher.ts';
import type { PrivateKeyMaterial, ToSign } from '../../../application/ports/kms.ts';
import type { Random } from '../../../application/ports/random.ts';
import { boundedBytes, registerCache } from '../../../application/tenant-cache/cache-memory.ts';
import { rawSignature } from '../../../domain/formats/der/ecdsa-signature.ts';
import { localKeySealContext, type SigningKey, type StoredKey } from '../../../domain/keys/signing-key.ts';
import { CURVES, type PublicJwk, type SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { KmsProvider } from '../kms-provider.ts';
import { parsePrivateKey, publicHalf } from '../private-key.ts';

const OPEN_KEY_BYTES = 24 * 1024 * 1024;
/** Memory of an open key in the library, besides its sealed text. */
const KEY_BYTES = 2_000;

type Ports = {
  /** Name under which the configuration lists this provider. */
  readonly name: string;
  readonly cipher: Cipher;
  readonly random: Random;
};

type OpenKey = { readonly sealedKey: string; readonly algorithm: SigningAlgorithm; readonly key: KeyObject };

/**
 * Keys in the service's own database: PKCS#8 sealed for exactly one tenant and key. Signing is synchronous; a key is opened once and then
 * cached.
 */
export class LocalKms extends KmsProvider {
  readonly #ports: Ports;
  readonly #open = registerCache(
    'local-keys',
    new LRUCache<string, OpenKey>(boundedBytes<OpenKey>(OPEN_KEY_BYTES, ({ sealedKey }) => KEY_BYTES + sealedKey.length)),
  );

  constructor(ports: Ports) {
    super();
    this.#ports = ports;
  }

  override async generate(tenantId: string, algorithm: SigningAlgorithm): Promise<StoredKey> {
    const { kty, name } = CURVES[algorithm];
    const { privateKey } = kty === 'OKP' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: name });
    return this.#store(tenantId, algorithm, privateKey, publicHalf(privateKey));
  }

  override async import(tenantId: string, material: PrivateKeyMaterial): Promise<StoredKey> {
    const { key, publicJwk, algorithm } = parsePrivateKey(material);
    return this.#store(tenantId, algorithm, key, publicJwk);
  }

  override sign(key: SigningKey, data: ToSign): Uint8Array {
    return signed(this.#opened(key), data);
  }

  override signMany(key: SigningKey, datas: readonly ToSign[]): readonly Uint8Array[] {
    const openKey = this.#opened(key);
    return datas.map((data) => signed(openKey, data));
  }

  override release(key: SigningKey): Uint8Array {
    return this.#opened(key).key.export({ format: 'der', type: 'pkcs8' });
  }

  #store(tenantId: string, algorithm: SigningAlgorithm, key: KeyObject, publicJwk: PublicJwk): StoredKey {
    const keyId = this.#ports.random.token();
    const der = key.export({ format: 'der', type: 'pkcs8' });
    const sealedKey = this.#ports.cipher.seal(der, localKeySealContext(tenantId, keyId));
    der.fill(0);
    return { handle: { kms: this.#ports.name, keyId, algorithm }, publicJwk, sealedKey };
  }

  /** The sealed text is compared, too, so that an altered row never signs with a cached key. */
  #opened({ tenantId, handle, sealedKey }: SigningKey): OpenKey {
    const context = localKeySealContext(tenantId, handle.keyId);
    const cached = this.#open.get(context);
    if (cached !== undefined && cached.sealedKey === sealedKey && cached.algorithm === handle.algorithm) return cached;
    if (sealedKey === undefined) throw new Error(`The local key ${handle.keyId} has no stored private key.`);

    const der = this.#ports.cipher.open(sealedKey, context);
    const { key, algorithm } = parsePrivateKey(der);
    der.fill(0);
    if (algorithm !== handle.algorithm) throw new Error(`The local key ${handle.keyId} is for ${algorithm}, not for ${handle.algorithm}.`);
    const openKey: OpenKey = { sealedKey, algorithm, key };
    this.#open.set(context, openKey);
    return openKey;
  }
}

function signed({ algorithm, key }: OpenKey, data: ToSign): Uint8Array {
  const curve = CURVES[algorithm];
  const bytes = typeof data === 'string' ? Buffer.from(data, 'utf8') : data;
  // A bare key: with the option for another signature format, signing takes more than twice as long.
  const signature = sign(curve.hash, bytes, key);
  return curve.kty === 'OKP' ? signature : rawSignature(signature, curve.bytes);
}
