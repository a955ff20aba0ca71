import type { FolderContents, FolderFault } from '../../domain/configuration-files/folder.ts';
import { type NarrowedRule, narrowedRuleOf } from '../../domain/configuration-files/narrowed-rules.ts';
import { type FileKind, resourceOf } from '../../domain/resources.ts';
import type { Failure } from '../../domain/shared/failure.ts';
import { isRejected, type Profile, warningsOf } from '../../domain/shared/finding.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { administratorOf, TenantIdSchema } from '../../domain/tenants/tenant.ts';
import { hasEnded } from '../../domain/tenants/tenant-end.ts';
import { needs, type PortsOf } from '../needs.ts';
import type { Clock } from '../ports/clock.ts';
import { DryRuns } from '../ports/dry-runs.ts';
import type { Store } from '../ports/store.ts';
import { ADMINISTRATION, type Administration } from './administration.ts';
import { type Applied, apply } from './apply.ts';
import { missingConfigurations } from './apply-client.ts';
import { type Described, type Document, described, folderFaultsOf, parseDocument, repositoryOf } from './documents.ts';
import { inDryRun } from './dry-run.ts';
import type { Outcome } from './outcome.ts';
import { putPlaceholder } from './placeholders.ts';

export type CheckedFolder = {
  /** By tenant, in the order of their names, without those whose time is over. */
  readonly documents: ReadonlyMap<TenantId, readonly Document[]>;
  /** What the import would do. */
  readonly outcomes: ReadonlyMap<Document, Outcome>;
  /** In the order of files and members. */
  readonly faults: readonly FolderFault[];
  /**
   * Files that an earlier release accepted and this one rejects, and files that need one of those; in the same order. They are
   * not imported: what is stored of them stays as it is.
   */
  readonly withheld: readonly FolderFault[];
  /** What is allowed, and probably not meant; in the same order. */
  readonly warnings: readonly FolderFault[];
  /** What is allowed, although a wallet, a law or a reader will refuse it; in the same order. */
  readonly advice: readonly FolderFault[];
};

/** Finds everything that is wrong with a folder, by its files alone and by the rules over what is stored. */
export class CheckFolder extends needs({ ...ADMINISTRATION, dryRuns: DryRuns }) {
  /** @param assumedProfile the profile by which tenants without one are advised; null for none. */
  async execute(contents: FolderContents, assumedProfile: Profile | null = null): Promise<CheckedFolder> {
    const { repeated, files } = findRepeated(contents);
    const faults: FolderFault[] = [...contents.faults, ...repeated];
    const withheld: FolderFault[] = [];
    const reject = (kind: FileKind, found: readonly FolderFault[]) => {
      const narrowed = found.flatMap((fault) => {
        const rule = narrowedRuleOf(kind, fault);
        return rule === undefined ? [] : [{ ...fault, message: withReason(fault.message, rule) }];
      });
      if (narrowed.length === found.length) withheld.push(...narrowed);
      else faults.push(...found);
    };
    const missing: Described[] = contents.unread.map(described);
    const documents: Document[] = [];
    for (const file of contents.documents) {
      const read = parseDocument(file);
      if ('faults' in read) {
        missing.push(described(file));
        // Placeholders without a value have faults of their own already, in `contents.faults`.
        if (read.faults.length > 0) reject(file.kind, read.faults);
      } else if (!files.has(file.file)) documents.push(read.document);
    }
    faults.push(...findAdministratorProblems(documents));
    const byTenant = new Map<TenantId, Document[]>();
    for (const tenant of contents.tenants as readonly TenantId[]) {
      const own = documents.filter((document) => document.tenant === tenant);
      faults.push(...findTenantProblems(tenant, [...own, ...missing]));
      if (own.every(({ kind }) => kind !== 'tenant')) missing.push({ kind: 'tenant', tenant, id: tenant });
      byTenant.set(tenant, own);
    }
    const ended = await endedTenants(this.ports, byTenant);
    for (const tenant of ended.keys()) byTenant.delete(tenant);
    let { outcomes, refused, warnings, advice } = await plan(this.ports, byTenant, { missing, assumedProfile });
    for (const [document, failure] of refused) reject(document.kind, folderFaultsOf(document, failure));
    if (faults.length === 0 && withheld.length > 0) {
      // Without placeholders: files that need a file that is not imported are not imported either.
      for (const [tenant, own] of byTenant) {
        byTenant.set(
          tenant,
          own.filter((document) => !refused.has(document)),
        );
      }
      ({ outcomes, refused, warnings, advice } = await plan(this.ports, byTenant, { missing: [], assumedProfile }));
      for (const [document, failure] of refused) withheld.push(...folderFaultsOf(document, failure).map(asDependent));
      for (const [tenant, own] of byTenant) {
        byTenant.set(
          tenant,
          own.filter((document) => outcomes.has(document)),
        );
      }
    }
    const readable = (all: readonly FolderFault[]) =>
      all.map((fault) => ({ ...fault, message: contents.redact(fault.message) })).sort(byPlace);
    return {
      documents: byTenant,
      outcomes,
      faults: readable(faults),
      withheld: readable(withheld),
      advice: readable(advice),
      warnings: readable([...ended.values(), ...warnings]),
    };
  }
}

function withReason(message: string, { acceptedBy, because, change }: NarrowedRule): string {
  return `${message} (not imported: release ${acceptedBy} accepted it, ${because}; ${change})`;
}

function asDependent(fault: FolderFault): FolderFault {
  return { ...fault, message: `${fault.message} (not imported: it needs a file that is not imported)` };
}

/** Applies the documents in a dry run. */
function plan(
  ports: PortsOf<typeof CheckFolder.needs>,
  documents: ReadonlyMap<TenantId, readonly Document[]>,
  { missing, assumedProfile }: { readonly missing: readonly Described[]; readonly assumedProfile: Profile | null },
): Promise<Applied & Pick<CheckedFolder, 'warnings' | 'advice'>> {
  const tenants = [...documents.keys()];
  const clients = [...documents.values()].flat().filter(({ kind }) => kind === 'client');
  const clientIds = [...clients.map(({ id }) => id), ...tenants.map(administratorOf)];
  return inDryRun(ports, { tenants, clientIds }, async (administration) => {
    const outcomes = new Map<Document, Outcome>();
    const refused = new Map<Document, Failure>();
    const warnings: FolderFault[] = [];
    const advice: FolderFault[] = [];
    for (const [tenant, own] of documents) {
      const keys = own.filter((document) => document.kind === 'key-chain');
      const placeholders = {
        missing: missing.filter((each) => each.tenant === tenant),
        put: (each: Described) => putPlaceholder(administration, each, keys),
      };
      const applied = await apply(administration, own, { placeholders });
      for (const [document, outcome] of applied.outcomes) outcomes.set(document, outcome);
      for (const [document, failure] of applied.refused) refused.set(document, failure);
      for (const document of own) {
        if (document.kind === 'client' && applied.outcomes.has(document)) {
          warnings.push(...(await missingConfigurations(administration, document)));
        }
      }
      const applicable = own.filter((document) => applied.outcomes.has(document));
      advice.push(...(await adviceOn(administration, applicable, assumedProfile)));
    }
    return { outcomes, refused, warnings, advice };
  });
}

/** The first of several files about one thing is judged; the others are only named. */
function findRepeated({ documents, unread }: FolderContents): {
  readonly repeated: readonly FolderFault[];
  readonly files: ReadonlySet<string>;
} {
  const first = new Map<string, string>();
  const repeated = new Map<string, FolderFault>();
  for (const document of [...documents, ...unread]) {
    const { kind, tenant, id } = described(document);
    const name = [tenant, kind, id].join('/');
    const other = first.get(name);
    const { file } = document;
    if (other === undefined) first.set(name, file);
    else repeated.set(file, { file, path: '', message: `describes the same as ${other}` });
  }
  return { repeated: [...repeated.values()], files: new Set(repeated.keys()) };
}

function findTenantProblems(tenant: TenantId, own: readonly Described[]): FolderFault[] {
  const faults: FolderFault[] = [];
  const [issue] = TenantIdSchema.safeParse(tenant).error?.issues ?? [];
  if (issue !== undefined) faults.push({ file: tenant, path: '', message: `is no tenant id: ${issue.message}` });
  if (own.every((document) => document.kind !== 'tenant' || document.tenant !== tenant)) {
    faults.push({ file: `${tenant}/tenant.json`, path: '', message: 'is missing' });
  }
  return faults;
}

/** Two documents about one client would take turns. */
function findAdministratorProblems(documents: readonly Document[]): FolderFault[] {
  return documents.flatMap((document): FolderFault[] => {
    if (document.kind !== 'tenant' || (document.body.roles ?? []).length === 0) return [];
    const id = administratorOf(document.body.id);
    const isHis = (each: Document) => each.kind === 'client' && each.id === id && each.tenant === document.tenant;
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

/** Kinds whose files hold what is stored of them. */
const STORED_AS_WRITTEN: readonly FileKind[] = ['issuance-configuration', 'credential-configuration', 'presentation-configuration'];

/** Kinds with findings about what is derived from their files, such as certificates and composed lists. */
const JUDGED_AS_STORED: readonly FileKind[] = ['key-chain', 'trust-list'];

/**
 * Warnings that the administrative interface would answer with.
 * @param administration has the documents applied.
 * @param own documents of one tenant, which no rule rejects.
 * @param assumed profile of the tenant if it has none. What this profile rejects is reported as a warning, too.
 */
async function adviceOn(
  administration: Administration,
  own: readonly Document[],
  assumed: Profile | null,
): Promise<readonly FolderFault[]> {
  const [first] = own;
  if (first === undefined) return [];
  const { store } = administration.ports;
  const tenant = await store.forService(({ tenants }) => tenants.find(first.tenant));
  const profile = tenant?.profile ?? assumed;
  const advice: FolderFault[] = [];
  for (const document of own) {
    const { kind, file } = document;
    const { findings } = resourceOf(kind);
    const judged = await validatedForm(administration, document);
    if (findings === undefined || judged === undefined) continue;
    for (const finding of findings(judged as never, profile)) {
      const consequence = isRejected(finding, profile) ? `; the profile ${profile} rejects it` : '';
      for (const { rule, member, concerns, message, change } of warningsOf([finding], profile)) {
        const reason = `(${rule}; concerns ${concerns}${consequence})`;
        advice.push({ file, path: member, message: `${message} ${reason}; ${change}` });
      }
    }
  }
  return advice;
}

async function validatedForm({ ports: { store } }: Administration, { kind, tenant, id, body }: Document): Promise<object | undefined> {
  if (STORED_AS_WRITTEN.includes(kind)) return body;
  if (kind === 'tenant') return store.forService(({ tenants }) => tenants.find(tenant));
  return JUDGED_AS_STORED.includes(kind) ? store.forTenant(tenant, (own) => repositoryOf(own, kind).find(id)) : undefined;
}

type Ports = { readonly store: Store; readonly clock: Clock };

/**
 * Tenants of a folder whose time is over: they stay ended, and keep no other tenant from being served.
 * A file that says so of a tenant that is still there is none of them: nobody is ended by a time that was mistyped.
 * @returns what to say of each.
 */
async function endedTenants(
  { store, clock }: Ports,
  documents: ReadonlyMap<TenantId, readonly Document[]>,
): Promise<ReadonlyMap<TenantId, FolderFault>> {
  const now = clock.now();
  const ended = new Map<TenantId, FolderFault>();
  for (const [id, own] of documents) {
    const document = own.find((each) => each.kind === 'tenant');
    if (document?.kind !== 'tenant') continue;
    const stored = await store.forService(({ tenants }) => tenants.find(id));
    const { endsAt: written } = document.body;
    const endsAt = stored === undefined ? written && new Date(written) : stored.endsAt;
    if (!endsAt || !hasEnded({ endsAt }, now)) continue;
    const doing = stored === undefined ? 'it is not made again' : 'it is being removed';
    const message = `the time of this tenant was over at ${endsAt.toISOString()}: ${doing}, and its files are passed over`;
    ended.set(id, { file: document.file, path: 'endsAt', message });
  }
  return ended;
}
