import { type KeyProvider, Kms, type PrivateKeyMaterial, type ToSign } from '../../application/ports/kms.ts';
import type { SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import type { KmsProvider, NamedProvider } from './kms-provider.ts';

/** Time in milliseconds for which the result of a check is reused. */
const CHECK_TTL_MS = 1_000;

type Settings = {
  readonly providers: readonly NamedProvider[];
  /** Provider of new keys unless the caller or the tenant names another one. */
  readonly default: string;
  /** Providers of new keys by tenant; existing keys stay where they are. */
  readonly tenantDefaults?: Readonly<Record<string, string>>;
};

/** Sends each call to the provider that the key, the caller or the tenant's configuration names. */
export class KmsRegistry extends Kms {
  readonly #providers: ReadonlyMap<string, NamedProvider>;
  readonly #default: string;
  readonly #tenantDefaults: ReadonlyMap<string, string>;

  /** Recent checks by provider, because many callers may need one. */
  readonly #checks = new Map<string, { readonly at: number; readonly result: Promise<void> }>();

  /** @throws Error if the configuration names a provider twice or refers to one that it does not list. */
  constructor(settings: Settings) {
    super();
    this.#providers = new Map(settings.providers.map((entry) => [entry.name, entry]));
    this.#default = settings.default;
    this.#tenantDefaults = new Map(Object.entries(settings.tenantDefaults ?? {}));
    if (this.#providers.size !== settings.providers.length) throw new Error('The KMS configuration contains a provider twice.');
    for (const name of [this.#default, ...this.#tenantDefaults.values()]) {
      if (!this.#providers.has(name)) throw new Error(unknownProviderMessage(name));
    }
  }

  override async generate(tenantId: string, algorithm: SigningAlgorithm, provider?: string): Promise<StoredKey> {
    const target = this.#providerForNewKey(tenantId, provider);
    assertAlgorithm(target, algorithm);
    return withProviderName(target, () => target.provider.generate(tenantId, algorithm));
  }

  override async import(tenantId: string, key: PrivateKeyMaterial, provider?: string): Promise<StoredKey> {
    const target = this.#providerForNewKey(tenantId, provider);
    return withProviderName(target, () => target.provider.import(tenantId, key));
  }

  override async copyToProvider(key: SigningKey, provider: string): Promise<StoredKey> {
    const target = this.#providerForNewKey(key.tenantId, provider);
    assertAlgorithm(target, key.handle.algorithm);
    const material = this.#providerOfKey(key).release(key);
    try {
      return await withProviderName(target, () => target.provider.import(key.tenantId, material));
    } finally {
      material.fill(0);
    }
  }

  override sign(key: SigningKey, data: ToSign): Uint8Array | Promise<Uint8Array> {
    return this.#providerOfKey(key).sign(key, data);
  }

  override signMany(key: SigningKey, datas: readonly ToSign[]): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
    return this.#providerOfKey(key).signMany(key, datas);
  }

  override assertReady(key: SigningKey): void {
    this.#providerOfKey(key).assertReady();
  }

  override async remove(key: SigningKey): Promise<void> {
    await this.#providerOfKey(key).remove(key);
  }

  override providers(tenantId?: string): readonly KeyProvider[] {
    return [...this.#providers.values()]
      .filter((provider) => isFor(provider, tenantId))
      .map(({ name, type, provider: { algorithms } }) => ({ name, type, algorithms, default: name === this.#default }))
      .sort((a, b) => Number(b.default) - Number(a.default));
  }

  override providerOf(tenantId: string): string {
    return this.#tenantDefaults.get(tenantId) ?? this.#default;
  }

  override async assertReachable(provider: string): Promise<void> {
    const entry = this.#providers.get(provider);
    if (entry === undefined) throw new Error(unknownProviderMessage(provider));
    const now = performance.now();
    const lastCheck = this.#checks.get(provider);
    if (lastCheck !== undefined && now - lastCheck.at < CHECK_TTL_MS) return lastCheck.result;
    const result = entry.provider.assertReachable();
    this.#checks.set(provider, { at: now, result });
    return result;
  }

  #providerOfKey({ handle: { kms } }: SigningKey): KmsProvider {
    const entry = this.#providers.get(kms);
    if (entry === undefined) {
      // Wallets learn nothing else about the configuration.
      const message = 'the key cannot be used at present; try again';
      throw new Failure('unavailable', message, { cause: new OperatorReason(unknownProviderMessage(kms)) });
    }
    return entry.provider;
  }

  #providerForNewKey(tenantId: string, requestedName?: string): NamedProvider {
    const name = requestedName ?? this.providerOf(tenantId);
    const entry = this.#providers.get(name);
    if (entry === undefined || !isFor(entry, tenantId)) throw new Failure('invalid_input', unknownProviderMessage(name));
    return entry;
  }
}

function isFor({ onlyFor }: NamedProvider, tenantId: string | undefined): boolean {
  return onlyFor === undefined || tenantId === undefined || onlyFor.includes(tenantId);
}

function assertAlgorithm({ name, provider: { algorithms } }: NamedProvider, algorithm: SigningAlgorithm): void {
  if (algorithms.includes(algorithm)) return;
  throw new Failure('invalid_input', `The KMS provider "${name}" creates no keys for ${algorithm}. Supported: ${algorithms.join(', ')}.`);
}

/** The creator of a key learns which provider does not respond; a wallet does not. */
async function withProviderName<T>({ name }: NamedProvider, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'unavailable') throw error;
    const message = `the KMS provider "${name}" does not answer at present; try again`;
    throw new Failure('unavailable', { ...error.details, message }, { cause: error.cause });
  }
}

function unknownProviderMessage(name: string): string {
  return `The KMS configuration has no provider "${name}". Add it, or use a configured provider.`;
}
