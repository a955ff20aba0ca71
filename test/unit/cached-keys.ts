import { X509Authority } from '../../adapters/crypto/x509-authority.ts';
import { KmsRegistry } from '../../adapters/kms/kms-registry.ts';

type Generated = ReturnType<KmsRegistry['generate']>;
type Issued = ReturnType<X509Authority['issue']>;

const KEYS = new Map<string, Generated>();
const CERTIFICATES = new Map<string, Issued>();

/** The number of calls per parameters in one world. */
type Counts = ReadonlyMap<string, number>;

/** Shares keys between worlds. One world never gets the same key twice, so certificates can be cached, too. */
export class CachedKmsRegistry extends KmsRegistry {
  readonly #count = new Map<string, number>();

  get counts(): Counts {
    return new Map(this.#count);
  }

  /** Restores the counters of a stored world. */
  set counts(counts: Counts) {
    for (const [key, count] of counts) this.#count.set(key, count);
  }

  override generate(...parameters: Parameters<KmsRegistry['generate']>): Generated {
    return getOrCreate(KEYS, numberedKey(this.#count, parameters), () => super.generate(...parameters));
  }
}

/** Shares certificates between worlds. */
export class CachedX509Authority extends X509Authority {
  readonly #count = new Map<string, number>();

  get counts(): Counts {
    return new Map(this.#count);
  }

  /** Restores the counters of a stored world. */
  set counts(counts: Counts) {
    for (const [key, count] of counts) this.#count.set(key, count);
  }

  override issue(...parameters: Parameters<X509Authority['issue']>): Issued {
    return getOrCreate(CERTIFICATES, numberedKey(this.#count, parameters), () => super.issue(...parameters));
  }
}

/** Returns the parameters with the number of the call in this world. */
function numberedKey(count: Map<string, number>, parameters: unknown): string {
  const key = JSON.stringify(parameters);
  const number = count.get(key) ?? 0;
  count.set(key, number + 1);
  return `${key} ${number}`;
}

function getOrCreate<T>(cache: Map<string, Promise<T>>, key: string, create: () => Promise<T>): Promise<T> {
  const value = cache.get(key) ?? create();
  cache.set(key, value);
  value.catch(() => cache.delete(key));
  return value;
}
