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
import { type AppliedDocuments, apply } from './apply.ts';
import { findMissingConfigurations } from './apply-client.ts';
import { type Document, type DocumentIdentity, folderFaultsOf, identityOf, parseDocument, repositoryOf } from './documents.ts';
import { inDryRun } from './dry-run.ts';
import type { Outcome } from './outcome.ts';
import { putPlaceholder } from './placeholders.ts';

export type CheckedFolder = {
  /** Documents by tenant, sorted by id, without ended tenants. */
  readonly documents: ReadonlyMap<TenantId, readonly Document[]>;
  /** The effect that an import would have. */
  readonly outcomes: ReadonlyMap<Document, Outcome>;
  /** Ordered by file and property. */
  readonly faults: readonly FolderFault[];
  /**
   * Files that an earlier version accepted and this one rejects, and files that depend on them; in the same order. They are
   * not imported, and their stored documents stay unchanged.
   */
  readonly withheld: readonly FolderFault[];
  /** Documents that are allowed, but probably mistaken; in the same order. */
  readonly warnings: readonly FolderFault[];
  /** Warnings that the administrative interface would return; in the same order. */
  readonly advice: readonly FolderFault[];
};

/** Validates a folder, by its files alone and by the rules over what is stored. */
export class CheckFolder extends needs({ ...ADMINISTRATION, dryRuns: DryRuns }) {
  /** @param assumedProfile profile for warnings about tenants without one; null for none. */
  async execute(contents: FolderContents, assumedProfile: Profile | null = null): Promise<CheckedFolder> {
    const { repeated, files } = findRepeated(contents);
    const faults: FolderFault[] = [...contents.faults, ...repeated];
    const withheld: FolderFault[] = [];
    const reject = (kind: FileKind, newFaults: readonly FolderFault[]) => {
      const narrowed = newFaults.flatMap((fault) => {
        const rule = narrowedRuleOf(kind, fault);
        return rule === undefined ? [] : [{ ...fault, message: withReason(fault.message, rule) }];
      });
      if (narrowed.length === newFaults.length) withheld.push(...narrowed);
      else faults.push(...newFaults);
    };
    const missingIdentities: DocumentIdentity[] = contents.invalidFiles.map(identityOf);
    const documents: Document[] = [];
    for (const file of contents.documents) {
      const parsed = parseDocument(file);
      if ('faults' in parsed) {
        missingIdentities.push(identityOf(file));
        // Placeholders without a value are already listed in `contents.faults`.
        if (parsed.faults.length > 0) reject(file.kind, parsed.faults);
      } else if (!files.has(file.file)) documents.push(parsed.document);
    }
    faults.push(...findAdministratorProblems(documents));
    const byTenant = new Map<TenantId, Document[]>();
    for (const tenant of contents.tenants as readonly TenantId[]) {
      const tenantDocuments = documents.filter((document) => document.tenant === tenant);
      faults.push(...findTenantProblems(tenant, [...tenantDocuments, ...missingIdentities]));
      if (tenantDocuments.every(({ kind }) => kind !== 'tenant')) missingIdentities.push({ kind: 'tenant', tenant, id: tenant });
      byTenant.set(tenant, tenantDocuments);
    }
    const endedFaults = await endedTenants(this.ports, byTenant);
    for (const tenant of endedFaults.keys()) byTenant.delete(tenant);
    let { outcomes, failures, warnings, advice } = await applyInDryRun(this.ports, byTenant, {
      missing: missingIdentities,
      assumedProfile,
    });
    for (const [document, failure] of failures) reject(document.kind, folderFaultsOf(document, failure));
    if (faults.length === 0 && withheld.length > 0) {
      // Repeated without placeholders: files that depend on a file that is not imported are not imported either.
      for (const [tenant, tenantDocuments] of byTenant) {
        byTenant.set(
          tenant,
          tenantDocuments.filter((document) => !failures.has(document)),
        );
      }
      ({ outcomes, failures, warnings, advice } = await applyInDryRun(this.ports, byTenant, { missing: [], assumedProfile }));
      for (const [document, failure] of failures) withheld.push(...folderFaultsOf(document, failure).map(asDependent));
      for (const [tenant, tenantDocuments] of byTenant) {
        byTenant.set(
          tenant,
          tenantDocuments.filter((document) => outcomes.has(document)),
        );
      }
    }
    const readable = (faultList: readonly FolderFault[]) =>
      faultList.map((fault) => ({ ...fault, message: contents.redact(fault.message) })).sort(compareFaults);
    return {
      documents: byTenant,
      outcomes,
      faults: readable(faults),
      withheld: readable(withheld),
      advice: readable(advice),
      warnings: readable([...endedFaults.values(), ...warnings]),
    };
  }
}

function withReason(message: string, { acceptedBy, because, change }: NarrowedRule): string {
  return `${message} (not imported: release ${acceptedBy} accepted it, ${because}; ${change})`;
}

function asDependent(fault: FolderFault): FolderFault {
  return { ...fault, message: `${fault.message} (not imported: it requires a file that is not imported)` };
}

function applyInDryRun(
  ports: PortsOf<typeof CheckFolder.needs>,
  documents: ReadonlyMap<TenantId, readonly Document[]>,
  { missing, assumedProfile }: { readonly missing: readonly DocumentIdentity[]; readonly assumedProfile: Profile | null },
): Promise<AppliedDocuments & Pick<CheckedFolder, 'warnings' | 'advice'>> {
  const tenants = [...documents.keys()];
  const clients = [...documents.values()].flat().filter(({ kind }) => kind === 'client');
  const clientIds = [...clients.map(({ id }) => id), ...tenants.map(administratorOf)];
  return inDryRun(ports, { tenants, clientIds }, async (administration) => {
    const outcomes = new Map<Document, Outcome>();
    const failures = new Map<Document, Failure>();
    const warnings: FolderFault[] = [];
    const advice: FolderFault[] = [];
    for (const [tenant, tenantDocuments] of documents) {
      const keys = tenantDocuments.filter((document) => document.kind === 'key-chain');
      const placeholders = {
        missing: missing.filter((identity) => identity.tenant === tenant),
        put: (identity: DocumentIdentity) => putPlaceholder(administration, identity, keys),
      };
      const applied = await apply(administration, tenantDocuments, { placeholders });
      for (const [document, outcome] of applied.outcomes) outcomes.set(document, outcome);
      for (const [document, failure] of applied.failures) failures.set(document, failure);
      for (const document of tenantDocuments) {
        if (document.kind === 'client' && applied.outcomes.has(document)) {
          warnings.push(...(await findMissingConfigurations(administration, document)));
        }
      }
      const applicable = tenantDocuments.filter((document) => applied.outcomes.has(document));
      advice.push(...(await findAdvice(administration, applicable, assumedProfile)));
    }
    return { outcomes, failures, warnings, advice };
  });
}

/** Several files about one resource are a fault; only the first one is applied. */
function findRepeated({ documents, invalidFiles }: FolderContents): {
  readonly repeated: readonly FolderFault[];
  readonly files: ReadonlySet<string>;
} {
  const fileByName = new Map<string, string>();
  const repeated = new Map<string, FolderFault>();
  for (const document of [...documents, ...invalidFiles]) {
    const { kind, tenant, id } = identityOf(document);
    const name = [tenant, kind, id].join('/');
    const otherFile = fileByName.get(name);
    const { file } = document;
    if (otherFile === undefined) fileByName.set(name, file);
    else repeated.set(file, { file, path: '', message: `describes the same object as ${otherFile}` });
  }
  return { repeated: [...repeated.values()], files: new Set(repeated.keys()) };
}

function findTenantProblems(tenant: TenantId, tenantDocuments: readonly DocumentIdentity[]): FolderFault[] {
  const faults: FolderFault[] = [];
  const [issue] = TenantIdSchema.safeParse(tenant).error?.issues ?? [];
  if (issue !== undefined) faults.push({ file: tenant, path: '', message: `is not a valid tenant id: ${issue.message}` });
  if (tenantDocuments.every((document) => document.kind !== 'tenant' || document.tenant !== tenant)) {
    faults.push({ file: `${tenant}/tenant.json`, path: '', message: 'is missing' });
  }
  return faults;
}

/** Two documents about one client would overwrite each other. */
function findAdministratorProblems(documents: readonly Document[]): FolderFault[] {
  return documents.flatMap((document): FolderFault[] => {
    if (document.kind !== 'tenant' || (document.body.roles ?? []).length === 0) return [];
    const id = administratorOf(document.body.id);
    const isAdministrator = (candidate: Document) =>
      candidate.kind === 'client' && candidate.id === id && candidate.tenant === document.tenant;
    const clientDocument = documents.find(isAdministrator);
    if (clientDocument === undefined) return [];
    const message = `the roles of the administrator are set in ${clientDocument.file}; remove them here`;
    return [{ file: document.file, path: 'roles', message }];
  });
}

function compareFaults(fault: FolderFault, otherFault: FolderFault): number {
  return compareTexts(fault.file, otherFault.file) || compareTexts(fault.path, otherFault.path);
}

function compareTexts(text: string, otherText: string): number {
  return text === otherText ? 0 : text < otherText ? -1 : 1;
}

/** Kinds whose files contain what is stored. */
const STORED_AS_WRITTEN: readonly FileKind[] = ['issuance-configuration', 'credential-configuration', 'presentation-configuration'];

/** Kinds with warnings about derived data, such as certificates and composed lists. */
const VALIDATED_AS_STORED: readonly FileKind[] = ['key-chain', 'trust-list'];

/**
 * Warnings that the administrative interface would return.
 * @param administration with the applied documents.
 * @param tenantDocuments documents of one tenant, which no rule rejects.
 * @param assumed profile of the tenant if it has none. Documents that this profile rejects are reported as warnings, too.
 */
async function findAdvice(
  administration: Administration,
  tenantDocuments: readonly Document[],
  assumed: Profile | null,
): Promise<readonly FolderFault[]> {
  const [firstDocument] = tenantDocuments;
  if (firstDocument === undefined) return [];
  const { store } = administration.ports;
  const tenant = await store.forService(({ tenants }) => tenants.find(firstDocument.tenant));
  const profile = tenant?.profile ?? assumed;
  const advice: FolderFault[] = [];
  for (const document of tenantDocuments) {
    const { kind, file } = document;
    const { findings } = resourceOf(kind);
    const form = await validatedForm(administration, document);
    if (findings === undefined || form === undefined) continue;
    for (const finding of findings(form as never, profile)) {
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
  return VALIDATED_AS_STORED.includes(kind)
    ? store.forTenant(tenant, (repositories) => repositoryOf(repositories, kind).find(id))
    : undefined;
}

type Ports = { readonly store: Store; readonly clock: Clock };

/**
 * Ended tenants of a folder: they are skipped, and do not keep other tenants from being served. A file that sets a past end date for an
 * existing tenant does not count, so that a typing error ends no tenant.
 * @returns a fault for each.
 */
async function endedTenants(
  { store, clock }: Ports,
  documents: ReadonlyMap<TenantId, readonly Document[]>,
): Promise<ReadonlyMap<TenantId, FolderFault>> {
  const now = clock.now();
  const endedFaults = new Map<TenantId, FolderFault>();
  for (const [id, tenantDocuments] of documents) {
    const document = tenantDocuments.find((candidate) => candidate.kind === 'tenant');
    if (document?.kind !== 'tenant') continue;
    const storedTenant = await store.forService(({ tenants }) => tenants.find(id));
    const { endsAt: documentEnd } = document.body;
    const endsAt = storedTenant === undefined ? documentEnd && new Date(documentEnd) : storedTenant.endsAt;
    if (!endsAt || !hasEnded({ endsAt }, now)) continue;
    const consequence = storedTenant === undefined ? 'it is not created again' : 'it is being removed';
    const message = `this tenant expired at ${endsAt.toISOString()}: ${consequence}, and its files are ignored`;
    endedFaults.set(id, { file: document.file, path: 'endsAt', message });
  }
  return endedFaults;
}
