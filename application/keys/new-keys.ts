import { type KeyHandle, type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import { type KeyProvider, Kms, type PrivateKeyMaterial, type SigningKey, type ToSign } from '../ports/kms.ts';
import type { Log } from '../ports/log.ts';
import { StoreUnavailable } from '../ports/store.ts';

/**
 * Runs `work`, which makes keys and stores what has them. When it fails, the keys that it made are destroyed again, so
 * that a provider does not fill up with keys of which nobody knows.
 * @param work gets the ports with a key provider that remembers what it made.
 */
export async function withNewKeys<Ports extends { readonly kms: Kms; readonly log: Log }, T>(
  ports: Ports,
  work: (ports: Ports) => Promise<T>,
): Promise<T> {
  const kms = new RememberingKms(ports.kms);
  try {
    return await work({ ...ports, kms });
  } catch (error) {
    // A connection that was lost says nothing about what it was to store: the keys may be in use.
    if (error instanceof StoreUnavailable) kms.tell(ports.log);
    else await kms.undo(ports.log);
    throw error;
  }
}

class RememberingKms extends Kms {
  readonly #kms: Kms;
  readonly #made: SigningKey[] = [];

  constructor(kms: Kms) {
    super();
    this.#kms = kms;
  }

  override async generate(tenantId: string, algorithm: SigningAlgorithm, provider?: string): Promise<StoredKey> {
    return this.#remember(tenantId, await this.#kms.generate(tenantId, algorithm, provider));
  }

  override async import(tenantId: string, key: PrivateKeyMaterial, provider?: string): Promise<StoredKey> {
    return this.#remember(tenantId, await this.#kms.import(tenantId, key, provider));
  }

  override async takeOver(key: SigningKey, provider: string): Promise<StoredKey> {
    return this.#remember(key.tenantId, await this.#kms.takeOver(key, provider));
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
    for (const key of this.#made) {
      try {
        await this.#kms.remove(key);
      } catch (error) {
        log.error('a key that nothing uses stays at its provider; destroy it there', about(key), error);
      }
    }
  }

  tell(log: Log): void {
    for (const key of this.#made) {
      if (key.sealedKey !== undefined) continue;
      log.warn('a key was made, and the database did not say whether it is in use', about(key));
    }
  }

  #remember(tenantId: string, key: StoredKey): StoredKey {
    this.#made.push(signingKey(tenantId, key));
    return key;
  }
}

function about({ tenantId, handle }: { readonly tenantId: string; readonly handle: KeyHandle }) {
  return { tenantId, provider: handle.kms, keyId: handle.keyId };
}
