import { randomBytes } from 'node:crypto';
import { MasterCipher } from '../adapters/crypto/cipher.ts';
import { KmsRegistry } from '../adapters/kms/kms-registry.ts';
import { LocalKms } from '../adapters/kms/local/local-kms.ts';
import { OrmStore } from '../adapters/persistence/orm/orm-store.ts';
import type { Cipher } from '../application/ports/cipher.ts';
import type { Kms } from '../application/ports/kms.ts';
import type { Random } from '../application/ports/random.ts';
import { Secrets } from '../application/ports/secrets.ts';
import type { Store } from '../application/ports/store.ts';
import { SYSTEM } from '../domain/audit/audit-entry.ts';
import type { SigningKey, StoredKey } from '../domain/keys/signing-key.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import { type ImportPorts, ImportTools } from './import-tools.ts';

/**
 * The same tools over a copy of the tenants in memory: what the rules say of the documents is found out without a
 * trace, neither in the store nor at a KMS.
 * @param clientIds that documents want: they may be taken by tenants that are not among `tenants`.
 */
export async function openRehearsal(
  ports: ImportPorts,
  tenants: readonly TenantId[],
  clientIds: readonly string[],
): Promise<ImportTools> {
  const { random, secrets } = ports;
  const cipher = new MasterCipher({ masterSecrets: [randomBytes(32).toString('base64url')] });
  const store = await OrmStore.open({ url: 'sqlite::memory:', poolSize: 2 }, cipher);
  for (const tenant of tenants) await copyTenant(ports.store, store, tenant);
  for (const clientId of clientIds) await copyStranger(ports.store, store, clientId);
  const kms = new RehearsalKms(ports.kms, { cipher, random });
  return new ImportTools({ ...ports, store, cipher, kms, secrets: new RehearsalSecrets(secrets) }, true);
}

async function copyTenant(from: Store, to: Store, id: TenantId): Promise<void> {
  const tenant = await from.forService(({ tenants }) => tenants.find(id));
  if (tenant === undefined) return;
  const all = await from.forTenant(id, async (own) => ({
    keyChains: await own.keyChains.list(),
    clients: await own.clients.list(),
    issuance: await own.issuanceConfiguration.list(),
    credentials: await own.credentialConfigurations.list(),
    presentations: await own.presentationConfigurations.list(),
    registrar: await own.registrarConfiguration.list(),
    certificates: await own.registrationCertificates.list(),
    statusLists: await own.statusLists.list(),
    trustLists: await own.trustLists.list(),
  }));
  const { keyChains, clients } = all;
  await to.forService(({ tenants }) => tenants.add(tenant, { keyChains, clients }), { by: SYSTEM });
  await to.forTenant(
    id,
    async (own) => {
      for (const document of all.issuance) await own.issuanceConfiguration.put(document);
      for (const document of all.credentials) await own.credentialConfigurations.put(document);
      for (const document of all.presentations) await own.presentationConfigurations.put(document);
      for (const document of all.registrar) await own.registrarConfiguration.put(document);
      for (const document of all.certificates) await own.registrationCertificates.put(document);
      for (const list of all.statusLists) await own.statusLists.add(list);
      for (const list of all.trustLists) await own.trustLists.add(list);
    },
    { by: SYSTEM },
  );
}

async function copyStranger(from: Store, to: Store, clientId: string): Promise<void> {
  const client = await from.forService(({ clients }) => clients.find(clientId));
  if (client === undefined) return;
  const known = await to.forService(({ clients }) => clients.find(clientId));
  if (known === undefined) await to.forService(({ clients }) => clients.add(client), { by: SYSTEM });
}

/** Bytes of a signature, by algorithm (RFC 7518 section 3.4, RFC 8037 section 3.1). */
const SIGNATURE_BYTES = { ES256: 64, ES384: 96, ES512: 132, EdDSA: 64 } as const;

/** Providers of the same names that forget their keys; a key of the real ones signs nothing here. */
class RehearsalKms extends KmsRegistry {
  readonly #made = new Set<string>();

  constructor(real: Kms, ports: { readonly cipher: Cipher; readonly random: Random }) {
    const all = real.providers();
    super({
      providers: all.map(({ name, type }) => ({ name, type, provider: new LocalKms({ ...ports, name }) })),
      default: all.find((provider) => provider.default)?.name ?? '',
    });
  }

  override async generate(...wanted: Parameters<Kms['generate']>): Promise<StoredKey> {
    return this.#remember(await super.generate(...wanted));
  }

  override async import(...wanted: Parameters<Kms['import']>): Promise<StoredKey> {
    return this.#remember(await super.import(...wanted));
  }

  override sign(key: SigningKey, data: Uint8Array | string): Uint8Array | Promise<Uint8Array> {
    const { keyId, algorithm } = key.handle;
    return this.#made.has(keyId) ? super.sign(key, data) : new Uint8Array(SIGNATURE_BYTES[algorithm]).fill(1);
  }

  #remember(key: StoredKey): StoredKey {
    this.#made.add(key.handle.keyId);
    return key;
  }
}

/** A new secret need not be hashed to be forgotten. */
class RehearsalSecrets extends Secrets {
  readonly #real: Secrets;

  constructor(real: Secrets) {
    super();
    this.#real = real;
  }

  override async hash(): Promise<string> {
    return '';
  }

  override verify(secret: string, hash: string): Promise<boolean> {
    return this.#real.verify(secret, hash);
  }
}
