import { type KeyProvider, Kms, type PrivateKeyMaterial, type ToSign } from '../../application/ports/kms.ts';
import type { SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';
import { Failure, OperatorReason } from '../../domain/shared/failure.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import type { KmsProvider, NamedProvider } from './kms-provider.ts';

/** Milliseconds for which it is known whether a provider answers. */
const CHECK_COUNTS_MS = 1_000;

type Settings = {
  readonly providers: readonly NamedProvider[];
  /** Name of the provider at which keys are born unless something else is said. */
  readonly default: string;
  /** Provider names by tenant. Decides where the next key is born; existing keys stay where they are. */
  readonly tenantDefaults?: Readonly<Record<string, string>>;
};

/** Sends each call to the provider that the key, the caller or the tenant's configuration names. */
export class KmsRegistry extends Kms {
  readonly #providers: ReadonlyMap<string, NamedProvider>;
  readonly #default: string;
  readonly #tenantDefaults: ReadonlyMap<string, string>;

  /** By provider: many may ask, and each answer counts for a while. */
  readonly #checks = new Map<string, { readonly at: number; readonly result: Promise<void> }>();

  /** @throws Error when the configuration names a provider twice or points to one that it does not list. */
  constructor(settings: Settings) {
    super();
    this.#providers = new Map(settings.providers.map((entry) => [entry.name, entry]));
    this.#default = settings.default;
    this.#tenantDefaults = new Map(Object.entries(settings.tenantDefaults ?? {}));
    if (this.#providers.size !== settings.providers.length) throw new Error('The KMS configuration names a provider twice.');
    for (const name of [this.#default, ...this.#tenantDefaults.values()]) {
      if (!this.#providers.has(name)) throw new Error(missing(name));
    }
  }

  override async generate(tenantId: string, algorithm: SigningAlgorithm, provider?: string): Promise<StoredKey> {
    const at = this.#birthplace(tenantId, provider);
    assertAlgorithm(at, algorithm);
    return named(at, () => at.provider.generate(tenantId, algorithm));
  }

  override async import(tenantId: string, key: PrivateKeyMaterial, provider?: string): Promise<StoredKey> {
    const at = this.#birthplace(tenantId, provider);
    return named(at, () => at.provider.import(tenantId, key));
  }

  override async takeOver(key: SigningKey, provider: string): Promise<StoredKey> {
    const to = this.#birthplace(key.tenantId, provider);
    assertAlgorithm(to, key.handle.algorithm);
    const material = this.#holder(key).release(key);
    try {
      return await named(to, () => to.provider.import(key.tenantId, material));
    } finally {
      material.fill(0);
    }
  }

  override sign(key: SigningKey, data: ToSign): Uint8Array | Promise<Uint8Array> {
    return this.#holder(key).sign(key, data);
  }

  override signMany(key: SigningKey, datas: readonly ToSign[]): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
    return this.#holder(key).signMany(key, datas);
  }

  override assertReady(key: SigningKey): void {
    this.#holder(key).assertReady();
  }

  override async remove(key: SigningKey): Promise<void> {
    await this.#holder(key).remove(key);
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
    const known = this.#providers.get(provider);
    if (known === undefined) throw new Error(missing(provider));
    const now = performance.now();
    const last = this.#checks.get(provider);
    if (last !== undefined && now - last.at < CHECK_COUNTS_MS) return last.result;
    const result = known.provider.assertReachable();
    this.#checks.set(provider, { at: now, result });
    return result;
  }

  #holder({ handle: { kms } }: SigningKey): KmsProvider {
    const known = this.#providers.get(kms);
    if (known === undefined) {
      // Wallets are told no more of the configuration than that.
      const message = 'the key cannot be used at present; try again';
      throw new Failure('unavailable', message, { cause: new OperatorReason(missing(kms)) });
    }
    return known.provider;
  }

  #birthplace(tenantId: string, wanted?: string): NamedProvider {
    const name = wanted ?? this.providerOf(tenantId);
    const known = this.#providers.get(name);
    if (known === undefined || !isFor(known, tenantId)) throw new Failure('invalid_input', missing(name));
    return known;
  }
}

function isFor({ onlyFor }: NamedProvider, tenantId: string | undefined): boolean {
  return onlyFor === undefined || tenantId === undefined || onlyFor.includes(tenantId);
}

function assertAlgorithm({ name, provider: { algorithms } }: NamedProvider, wanted: SigningAlgorithm): void {
  if (algorithms.includes(wanted)) return;
  throw new Failure('invalid_input', `The KMS provider "${name}" makes no keys for ${wanted}, but for: ${algorithms.join(', ')}.`);
}

/** Who makes keys is told which provider does not answer; a wallet is not. */
async function named<T>({ name }: NamedProvider, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'unavailable') throw error;
    const message = `the KMS provider "${name}" does not answer at present; try again`;
    throw new Failure('unavailable', { ...error.details, message }, { cause: error.cause });
  }
}

function missing(name: string): string {
  return `The KMS configuration has no provider named "${name}". Add it, or name one that is configured.`;
}
