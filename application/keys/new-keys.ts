import { type KeyHandle, type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { type KeyProvider, Kms, type PrivateKeyMaterial, type SigningKey, type ToSign } from '../ports/kms.ts';
import type { Log } from '../ports/log.ts';
import { StoreUnavailableError } from '../ports/store.ts';

/**
 * Runs `work`, which creates keys and stores the rows that use them. If it fails, the created keys are destroyed again, so
 * that no unused keys accumulate at a provider.
 * @param work gets the ports with a KMS that records created keys.
 */
export async function withNewKeys<Ports extends { readonly kms: Kms; readonly log: Log }, T>(
  ports: Ports,
  work: (ports: Ports) => Promise<T>,
): Promise<T> {
  const kms = new TrackingKms(ports.kms);
  try {
    return await work({ ...ports, kms });
  } catch (error) {
    // After a lost connection the outcome of the transaction is unknown: the keys may be in use.
    if (error instanceof StoreUnavailableError) kms.reportUncertain(ports.log);
    else await kms.undo(ports.log);
    throw error;
  }
}

class TrackingKms extends Kms {
  readonly #kms: Kms;
  readonly #createdKeys: SigningKey[] = [];

  constructor(kms: Kms) {
    super();
    this.#kms = kms;
  }

  override async generate(tenantId: string, algorithm: SigningAlgorithm, provider?: string): Promise<StoredKey> {
    return this.#track(tenantId, await this.#kms.generate(tenantId, algorithm, provider));
  }

  override async import(tenantId: string, key: PrivateKeyMaterial, provider?: string): Promise<StoredKey> {
    return this.#track(tenantId, await this.#kms.import(tenantId, key, provider));
  }

  override async copyToProvider(key: SigningKey, provider: string): Promise<StoredKey> {
    return this.#track(key.tenantId, await this.#kms.copyToProvider(key, provider));
  }

  override sign(key: SigningKey, data: ToSign): Uint8Array | Promise<Uint8Array> {
    return this.#kms.sign(key, data);
  }

  override signMany(key: SigningKey, datas: readonly ToSign[]): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
    return this.#kms.signMany(key, datas);
  }

  override assertReady(key: SigningKey): void {
    this.#kms.assertReady(key);
  }

  override remove(key: SigningKey): Promise<void> {
    return this.#kms.remove(key);
  }

  override providers(tenantId?: string): readonly KeyProvider[] {
    return this.#kms.providers(tenantId);
  }

  override providerOf(tenantId: string): string {
    return this.#kms.providerOf(tenantId);
  }

  override assertReachable(provider: string): Promise<void> {
    return this.#kms.assertReachable(provider);
  }

  async undo(log: Log): Promise<void> {
    for (const key of this.#createdKeys) {
      try {
        await this.#kms.remove(key);
      } catch (error) {
        log.error('an unused key remains at its provider; destroy it there', about(key), error);
      }
    }
  }

  reportUncertain(log: Log): void {
    for (const key of this.#createdKeys) {
      if (key.sealedKey !== undefined) continue;
      log.warn('a key was created, and the database did not confirm that it is in use', about(key));
    }
  }

  #track(tenantId: string, key: StoredKey): StoredKey {
    this.#createdKeys.push(signingKey(tenantId, key));
    return key;
  }
}

function about({ tenantId, handle }: { readonly tenantId: string; readonly handle: KeyHandle }) {
  return { tenantId, provider: handle.kms, keyId: handle.keyId };
}
