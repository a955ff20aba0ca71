import { X509Authority } from '../../adapters/crypto/x509-authority.ts';
import { KmsRegistry } from '../../adapters/kms/kms-registry.ts';

type Generated = ReturnType<KmsRegistry['generate']>;
type Issued = ReturnType<X509Authority['issue']>;

const KEYS = new Map<string, Generated>();
const CERTIFICATES = new Map<string, Issued>();

/** How often each thing was wanted in one world. */
type Counts = ReadonlyMap<string, number>;

/** All worlds have the same keys, one world never the same key twice: certificates of them are made once. */
export class KeysMadeOnce extends KmsRegistry {
  readonly #count = new Map<string, number>();

  get counts(): Counts {
    return new Map(this.#count);
  }

  /** Goes on as a world in which all this was wanted. */
  set counts(counts: Counts) {
    for (const [what, count] of counts) this.#count.set(what, count);
  }

  override generate(...wanted: Parameters<KmsRegistry['generate']>): Generated {
    return once(KEYS, nth(this.#count, wanted), () => super.generate(...wanted));
  }
}

/** The same for certificates. */
export class CertificatesMadeOnce extends X509Authority {
  readonly #count = new Map<string, number>();

  get counts(): Counts {
    return new Map(this.#count);
  }

  /** Goes on as a world in which all this was wanted. */
  set counts(counts: Counts) {
    for (const [what, count] of counts) this.#count.set(what, count);
  }

  override issue(...wanted: Parameters<X509Authority['issue']>): Issued {
    return once(CERTIFICATES, nth(this.#count, wanted), () => super.issue(...wanted));
  }
}

/** What is wanted, and for which time in this world. */
function nth(count: Map<string, number>, wanted: unknown): string {
  const what = JSON.stringify(wanted);
  const before = count.get(what) ?? 0;
  count.set(what, before + 1);
  return `${what} ${before}`;
}

function once<T>(known: Map<string, Promise<T>>, name: string, make: () => Promise<T>): Promise<T> {
  const made = known.get(name) ?? make();
  known.set(name, made);
  made.catch(() => known.delete(name));
  return made;
}
