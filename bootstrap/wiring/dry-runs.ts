import { randomBytes } from 'node:crypto';
import { MasterCipher } from '../../adapters/crypto/cipher.ts';
import { X509Authority } from '../../adapters/crypto/x509-authority.ts';
import { KmsRegistry } from '../../adapters/kms/kms-registry.ts';
import { LocalKms } from '../../adapters/kms/local/local-kms.ts';
import { OrmStore } from '../../adapters/persistence/orm-store.ts';
import { needs, type PortsOf } from '../../application/needs.ts';
import type { DryRun, DryRuns } from '../../application/ports/dry-runs.ts';
import { type KeyProvider, Kms, type ToSign } from '../../application/ports/kms.ts';
import { Random } from '../../application/ports/random.ts';
import { Secrets } from '../../application/ports/secrets.ts';
import type { SigningKey, StoredKey } from '../../domain/keys/signing-key.ts';
import type { Quotas } from '../../domain/tenants/quotas.ts';

/** Dry runs over a database in memory, with key providers that have the names of the real ones. */
export class DryRunsInMemory extends needs({ kms: Kms, random: Random, secrets: Secrets }) implements DryRuns {
  readonly #quotas: Quotas;

  constructor(ports: PortsOf<typeof DryRunsInMemory.needs>, quotas: Quotas) {
    super(ports);
    this.#quotas = quotas;
  }

  async open(): Promise<DryRun> {
    const { random, secrets } = this.ports;
    const cipher = new MasterCipher({ masterSecrets: [randomBytes(32).toString('base64url')] });
    const store = await OrmStore.open({ url: 'sqlite::memory:', poolSize: 2, quotas: this.#quotas }, cipher);
    const kms = new ForgetfulKms(this.ports, cipher);
    return {
      store,
      cipher,
      kms,
      // A new secret is discarded after the dry run, so it need not be hashed.
      secrets: { hash: async () => '', verify: (secret, hash, name) => secrets.verify(secret, hash, name) },
      certificateAuthority: new X509Authority({ kms, random }),
      close: () => store.close(),
    };
  }
}

/** The bytes of a signature, by algorithm (RFC 7518 section 3.4, RFC 8037 section 3.1). */
const SIGNATURE_BYTES = { ES256: 64, ES384: 96, ES512: 132, EdDSA: 64 } as const;

/** Providers that forget their keys. Signatures with existing keys are placeholders. */
class ForgetfulKms extends KmsRegistry {
  readonly #kms: Kms;
  readonly #createdKeyIds = new Set<string>();

  constructor({ kms, random }: PortsOf<typeof DryRunsInMemory.needs>, cipher: MasterCipher) {
    const allProviders = kms.providers();
    super({
      providers: allProviders.map(({ name, type }) => ({ name, type, provider: new LocalKms({ name, cipher, random }) })),
      default: allProviders.find((provider) => provider.default)?.name ?? '',
    });
    this.#kms = kms;
  }

  override async generate(...keyRequest: Parameters<Kms['generate']>): Promise<StoredKey> {
    return this.#remember(await super.generate(...keyRequest));
  }

  override async import(...keyRequest: Parameters<Kms['import']>): Promise<StoredKey> {
    return this.#remember(await super.import(...keyRequest));
  }

  override providers(tenantId?: string): readonly KeyProvider[] {
    return this.#kms.providers(tenantId);
  }

  override providerOf(tenantId: string): string {
    return this.#kms.providerOf(tenantId);
  }

  override async remove(): Promise<void> {}

  override async signMany(key: SigningKey, datas: readonly ToSign[]): Promise<readonly Uint8Array[]> {
    return Promise.all(datas.map((data) => this.sign(key, data)));
  }

  override sign(key: SigningKey, data: ToSign): Uint8Array | Promise<Uint8Array> {
    const { keyId, algorithm } = key.handle;
    return this.#createdKeyIds.has(keyId) ? super.sign(key, data) : new Uint8Array(SIGNATURE_BYTES[algorithm]).fill(1);
  }

  #remember(key: StoredKey): StoredKey {
    this.#createdKeyIds.add(key.handle.keyId);
    return key;
  }
}
