import type { Store } from '../application/ports/store.ts';
import { type DocumentKind, pathOf } from '../config/import/folder-document.ts';
import { escapePlaceholders, mapTexts } from '../config/import/placeholders.ts';
import type { Client } from '../domain/clients/client.ts';
import { subjectNames } from '../domain/keys/certificate-subject.ts';
import type { KeyChain } from '../domain/keys/key-chain.ts';
import { isSelfSigned } from '../domain/keys/self-signed.ts';
import { isSameHandle } from '../domain/keys/signing-key.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import type { Json, JsonObject } from '../domain/shared/json.ts';
import { SessionStorageConfig, StatusListConfig, type Tenant } from '../domain/tenants/tenant.ts';
import { configurationOf } from '../domain/trust-lists/list-configuration.ts';
import { SecretNames } from './export-secrets.ts';
import { MEMBERS, SECRETS } from './import-documents.ts';

export type ExportedFile = {
  /** Path from the folder of the tenant, with slashes. */
  readonly path: string;
  readonly document: JsonObject;
};

export type ExportedTenant = {
  readonly files: readonly ExportedFile[];
  /** Variables that the files name, in their order. */
  readonly secrets: readonly { readonly name: string; readonly path: string; readonly member: string }[];
};

/**
 * A tenant as files that the import takes, without a secret and without what the service adds (keys, times, releases).
 * The same tenant always makes the same files.
 * @throws Failure `not_found`.
 */
export async function exportTenant(store: Store, id: TenantId): Promise<ExportedTenant> {
  const names = new SecretNames(id);
  const files: ExportedFile[] = [];
  const secrets: { name: string; path: string; member: string }[] = [];
  for (const { kind, name, document } of await documentsOf(store, id)) {
    const path = freePath(files, pathOf(kind, name));
    const written = mapTexts(ordered(kind, document), (text, member) => {
      const what = SECRETS[kind]?.[member];
      if (what === undefined) return escapePlaceholders(text);
      const variable = names.next(name, what);
      secrets.push({ name: variable, path, member });
      return `\${${variable}}`;
    });
    files.push({ path, document: written as JsonObject });
  }
  return { files, secrets };
}

type Named = { readonly kind: DocumentKind; readonly name: string; readonly document: object };

async function documentsOf(store: Store, id: TenantId): Promise<Named[]> {
  return store.forTenant(id, async (own) => {
    const chains = await own.keyChains.list();
    const lists = await own.trustLists.list();
    const many = (kind: DocumentKind, documents: readonly { readonly id: string }[]): Named[] =>
      documents.map((document) => ({ kind, name: document.id, document }));
    const single = (kind: DocumentKind, documents: readonly object[]): Named[] =>
      documents.map((document) => ({ kind, name: kind, document: { ...document, id: undefined } }));
    return [
      { kind: 'tenant', name: id, document: tenantDocument(await own.tenant.get()) },
      ...many(
        'key-chain',
        chains.map((chain) => keyChainDocument(chain, chains)),
      ),
      ...single('registrar', await own.registrarConfiguration.list()),
      ...many('presentation', await own.presentationConfigurations.list()),
      ...many(
        'trust-list',
        lists.map((list) => configurationOf(list.id, { ...list, entities: [...list.entities] })),
      ),
      ...single('issuance', await own.issuanceConfiguration.list()),
      ...many('credential', await own.credentialConfigurations.list()),
      ...(await own.clients.list()).map(
        (client): Named => ({
          kind: 'client',
          name: client.clientId,
          document: clientDocument(client),
        }),
      ),
    ];
  });
}

function tenantDocument({ id, name, description, status, sessionConfig, statusListConfig }: Tenant): object {
  return {
    id,
    name,
    description,
    status,
    // Databases give members in an order of their own.
    sessionConfig: SessionStorageConfig.nullable().parse(sessionConfig),
    statusListConfig: StatusListConfig.nullable().parse(statusListConfig),
  };
}

/** The secret itself is nowhere; whoever imports the client knows it, or gives it another one. */
function clientDocument({ secretHash: _secretHash, pickUp: _pickUp, ...client }: Client): object {
  return { ...client, secret: 'unknown' };
}

/** Members without a value are left out; the others stand in the order in which they are described. */
function ordered(kind: DocumentKind, document: object): JsonObject {
  const given = new Map(Object.entries(document));
  const members = MEMBERS[kind].flatMap((name): [string, Json][] => {
    const value = given.get(name) as Json | undefined;
    return value === null || value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(members);
}

/** Ids differ in case alone, or have letters that file systems do not take. */
function freePath(files: readonly ExportedFile[], wanted: string): string {
  const taken = new Set(files.map(({ path }) => path.toLowerCase()));
  const plain = wanted.replaceAll(':', '_');
  for (let number = 1; ; number++) {
    const path = `${plain}${number === 1 ? '' : `-${number}`}.json`;
    if (!taken.has(path.toLowerCase())) return path;
  }
}

/** How another key chain like this one is made; its private key does not leave the KMS. */
function keyChainDocument(chain: KeyChain, all: readonly KeyChain[]): { readonly id: string } {
  const { id, description, usages, active, root, rotationEnabled, rotationIntervalDays, certValidityDays } =
    chain;
  const { commonName, country, organization } = subjectNames(active.certificates[0] ?? '');
  return {
    id,
    description,
    usages,
    kmsProvider: chain.kmsProvider,
    algorithm: active.key.handle.algorithm,
    subjectName: fitting(commonName),
    country,
    organization: fitting(organization),
    rotationEnabled,
    rotationIntervalDays,
    certValidityDays,
    rootKeyChainId: root && authorityOf(chain, all),
    selfSigned: root === undefined && isSelfSigned(active) ? true : undefined,
  } as { readonly id: string };
}

/** Certificates from elsewhere have longer names than those that are made here. */
function fitting(name: string | undefined): string | undefined {
  return name !== undefined && name.length <= 64 ? name : undefined;
}

/** The oldest key chain under the same CA, unless that is this one. */
function authorityOf(chain: KeyChain, all: readonly KeyChain[]): string | undefined {
  const { root } = chain;
  const [first] = all
    .filter(
      (other) =>
        root !== undefined &&
        other.root !== undefined &&
        isSameHandle(other.root.key.handle, root.key.handle),
    )
    .sort(
      (one, other) => one.createdAt.getTime() - other.createdAt.getTime() || (one.id < other.id ? -1 : 1),
    );
  return first?.id === chain.id ? undefined : first?.id;
}
