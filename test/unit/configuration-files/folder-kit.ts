import { CheckFolder } from '../../../application/configuration-files/check.ts';
import { ExportTenant } from '../../../application/configuration-files/export-tenant.ts';
import { ImportFolder } from '../../../application/configuration-files/import-folder.ts';
import { type DryRun, DryRuns } from '../../../application/ports/dry-runs.ts';
import { type FolderContents, type FolderDocument, locationOf } from '../../../domain/configuration-files/folder.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { MemoryStore } from '../../support/memory-store.ts';
import { type AdministrationWorld, anAdministration } from '../administrators.ts';

export const CARD = {
  config: { format: 'dc+sd-jwt', scope: 'card', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
};

/** Documents by path. A value is undefined for a file that cannot be read. */
export type Folder = Readonly<Record<string, object | undefined>>;

/** Returns the contents of a folder. `secrets` are the values that came from the environment. */
export function contentsOf(folder: Folder, secrets: readonly string[] = []): FolderContents {
  const documents: FolderDocument[] = [];
  const invalidFiles: FolderContents['invalidFiles'][number][] = [];
  for (const [file, value] of Object.entries(folder).sort(([left], [right]) => (left < right ? -1 : 1))) {
    const [tenant = '', ...path] = file.split('/');
    const location = locationOf(path.join('/'));
    if (location === undefined) throw new Error(`no document belongs to ${file}`);
    const document = { file, tenant, kind: location.kind, name: location.kind === 'tenant' ? tenant : location.name };
    if (value === undefined) invalidFiles.push(document);
    else documents.push({ ...document, value: value as JsonObject, unfilled: [] });
  }
  return {
    documents,
    invalidFiles,
    tenants: [...new Set([...documents, ...invalidFiles].map(({ tenant }) => tenant))],
    faults: invalidFiles.map(({ file }) => ({ file, path: '', message: 'cannot be read' })),
    redact: (message) => secrets.reduce((text, secret) => text.replaceAll(secret, '***'), message),
    withPlaceholders: (text) => text,
  };
}

/** Dry runs on databases in memory. */
class ReusedDryRuns extends DryRuns {
  readonly #world: AdministrationWorld;

  constructor(world: AdministrationWorld) {
    super();
    this.#world = world;
  }

  override async open(): Promise<DryRun> {
    const { cipher, kms, secrets, certificateAuthority } = this.#world;
    return { store: new MemoryStore(), cipher, kms, secrets, certificateAuthority, close: async () => {} };
  }
}

/** A store with the tenant `acme`, and the use cases of configuration files. */
export async function aFolderWorld() {
  const world = await anAdministration();
  const ports = { ...world, dryRuns: new ReusedDryRuns(world) };
  const check = (folder: Folder, secrets?: readonly string[]) => new CheckFolder(ports).execute(contentsOf(folder, secrets));
  const load = (folder: Folder, secrets?: readonly string[]) =>
    new ImportFolder(ports).execute('config', contentsOf(folder, secrets), { isAlone: true });
  const save = (tenant: string) => new ExportTenant(world).execute(tenant as TenantId);
  return { ...ports, check, load, save };
}

export type FolderWorld = Awaited<ReturnType<typeof aFolderWorld>>;
