import { Kms, type PrivateKeyMaterial } from '../../application/ports/kms.ts';
import type { SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import type { KmsProvider, NamedProvider } from './kms-provider.ts';

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

  /** @throws Error when the configuration names a provider twice or points to one that it does not list. */
  constructor(settings: Settings) {
    super();
    this.#providers = new Map(settings.providers.map((entry) => [entry.name, entry]));
    this.#default = settings.default;
    this.#tenantDefaults = new Map(Object.entries(settings.tenantDefaults ?? {}));
    if (this.#providers.size !== settings.providers.length) {
      throw new Error('The KMS configuration names a provider twice.');
    }
    for (const name of [this.#default, ...this.#tenantDefaults.values()]) {
      if (!this.#providers.has(name)) throw new Error(missing(name));
    }
  }

  override async generate(
    tenantId: string,
    algorithm: SigningAlgorithm,
    provider?: string,
  ): Promise<StoredKey> {
    return this.#birthplace(tenantId, provider).generate(tenantId, algorithm);
  }

  override async import(tenantId: string, key: PrivateKeyMaterial, provider?: string): Promise<StoredKey> {
    return this.#birthplace(tenantId, provider).import(tenantId, key);
  }

  override sign(key: SigningKey, data: Uint8Array | string): Uint8Array | Promise<Uint8Array> {
    const known = this.#providers.get(key.handle.kms);
    if (known === undefined) throw new Failure('unavailable', missing(key.handle.kms));
    return known.provider.sign(key, data);
  }

  override providers(): readonly { name: string; type: string; default: boolean }[] {
    return [...this.#providers.values()]
      .map(({ name, type }) => ({ name, type, default: name === this.#default }))
      .sort((a, b) => Number(b.default) - Number(a.default));
  }

  #birthplace(tenantId: string, wanted?: string): KmsProvider {
    const name = wanted ?? this.#tenantDefaults.get(tenantId) ?? this.#default;
    const known = this.#providers.get(name);
    if (known === undefined) throw new Failure('invalid_input', missing(name));
    return known.provider;
  }
}

function missing(name: string): string {
  return `The KMS configuration has no provider named "${name}". Add it, or name one that is configured.`;
}
