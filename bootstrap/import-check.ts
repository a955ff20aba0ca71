import type { FolderFault } from '../config/import/folder-document.ts';
import type { FolderContents } from '../config/import/read-folder.ts';
import type { Failure } from '../domain/shared/failure.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import { administratorOf, TenantIdSchema } from '../domain/tenants/tenant.ts';
import { type ImportResult, importAll, type Missing, type StandIns } from './import-all.ts';
import { missingConfigurations } from './import-clients.ts';
import { type ImportDocument, idOf, readDocument } from './import-documents.ts';
import { faultsOf, type Outcome } from './import-outcome.ts';
import { openRehearsal } from './import-rehearsal.ts';
import { putStandIn } from './import-stand-ins.ts';
import type { ImportPorts } from './import-tools.ts';

export type CheckedFolder = {
  /** By tenant, in the order of their names. */
  readonly documents: ReadonlyMap<string, readonly ImportDocument[]>;
  /** What the import would do. */
  readonly outcomes: ReadonlyMap<ImportDocument, Outcome>;
  /** In the order of files and members. */
  readonly faults: readonly FolderFault[];
  /** What is allowed, and probably not meant; in the same order. */
  readonly warnings: readonly FolderFault[];
};

/** Finds everything that is wrong with a folder, by its files alone and by the rules over what is stored. */
export async function checkFolder(ports: ImportPorts, contents: FolderContents): Promise<CheckedFolder> {
  const { repeated, files } = findRepeated(contents);
  const faults: FolderFault[] = [...contents.faults, ...repeated];
  const broken: Missing[] = contents.unread.map((file) => ({ ...file, id: idOf(file) }));
  const documents: ImportDocument[] = [];
  for (const file of contents.documents) {
    const read = readDocument(file);
    if ('faults' in read) {
      broken.push({ kind: file.kind, tenant: file.tenant, id: idOf(file) });
      faults.push(...read.faults);
    } else if (!files.has(file.file)) documents.push(read.document);
  }
  faults.push(...administratorFaults(documents));
  const byTenant = new Map<string, ImportDocument[]>();
  for (const tenant of contents.tenants) {
    const own = documents.filter((document) => document.tenant === tenant);
    faults.push(...tenantFaults(tenant, [...own, ...broken]));
    if (own.every(({ kind }) => kind !== 'tenant')) broken.push({ kind: 'tenant', tenant, id: tenant });
    byTenant.set(tenant, own);
  }
  const { outcomes, refused, warnings } = await rehearse(ports, byTenant, broken);
  for (const [document, failure] of refused) faults.push(...faultsOf(document, failure));
  const readable = (all: readonly FolderFault[]) =>
    all.map((fault) => ({ ...fault, message: contents.redact(fault.message) })).sort(byPlace);
  return { documents: byTenant, outcomes, faults: readable(faults), warnings: readable(warnings) };
}

async function rehearse(
  ports: ImportPorts,
  documents: ReadonlyMap<string, readonly ImportDocument[]>,
  broken: readonly Missing[],
): Promise<ImportResult & Pick<CheckedFolder, 'warnings'>> {
  const tenants = [...documents.keys()] as TenantId[];
  const clients = [...documents.values()].flat().filter(({ kind }) => kind === 'client');
  const names = [...clients.map(({ id }) => id), ...tenants.map(administratorOf)];
  const tools = await openRehearsal(ports, tenants, names);
  const outcomes = new Map<ImportDocument, Outcome>();
  const refused = new Map<ImportDocument, Failure>();
  const warnings: FolderFault[] = [];
  for (const [tenant, own] of documents) {
    const keys = own.filter((document) => document.kind === 'key-chain');
    const standIns: StandIns = {
      broken: broken.filter((each) => each.tenant === tenant),
      put: (missing) => putStandIn(tools, missing, keys),
    };
    const result = await importAll(tools, own, { standIns });
    for (const [document, outcome] of result.outcomes) outcomes.set(document, outcome);
    for (const [document, failure] of result.refused) refused.set(document, failure);
    for (const document of own) {
      if (document.kind === 'client' && result.outcomes.has(document)) {
        warnings.push(...(await missingConfigurations(tools, document)));
      }
    }
  }
  return { outcomes, refused, warnings };
}

/** The first of several files about one thing is judged; the others are only named. */
function findRepeated({ documents, unread }: FolderContents): {
  readonly repeated: readonly FolderFault[];
  readonly files: ReadonlySet<string>;
} {
  const first = new Map<string, string>();
  const repeated = new Map<string, FolderFault>();
  for (const document of [...documents, ...unread]) {
    const { kind, tenant, file } = document;
    const name = [tenant, kind, idOf(document)].join('/');
    const other = first.get(name);
    if (other === undefined) first.set(name, file);
    else repeated.set(file, { file, path: '', message: `describes the same as ${other}` });
  }
  return { repeated: [...repeated.values()], files: new Set(repeated.keys()) };
}

function tenantFaults(tenant: string, own: readonly Missing[]): FolderFault[] {
  const faults: FolderFault[] = [];
  const named = TenantIdSchema.safeParse(tenant);
  const [issue] = named.error?.issues ?? [];
  if (issue !== undefined)
    faults.push({ file: tenant, path: '', message: `is no tenant id: ${issue.message}` });
  if (own.every((document) => document.kind !== 'tenant' || document.tenant !== tenant)) {
    faults.push({ file: `${tenant}/tenant.json`, path: '', message: 'is missing' });
  }
  return faults;
}

/** Two documents about one client would take turns. */
function administratorFaults(documents: readonly ImportDocument[]): FolderFault[] {
  return documents.flatMap((document): FolderFault[] => {
    if (document.kind !== 'tenant' || (document.body.roles ?? []).length === 0) return [];
    const id = administratorOf(document.body.id);
    const isHis = (each: ImportDocument) =>
      each.kind === 'client' && each.id === id && each.tenant === document.tenant;
    const other = documents.find(isHis);
    if (other === undefined) return [];
    const message = `the administrator has its roles in ${other.file}; leave them out here`;
    return [{ file: document.file, path: 'roles', message }];
  });
}

function byPlace(one: FolderFault, other: FolderFault): number {
  return compare(one.file, other.file) || compare(one.path, other.path);
}

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
