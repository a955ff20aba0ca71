import type { FolderFault } from '../../domain/configuration-files/folder.ts';
import { type FileKind, resourceOf } from '../../domain/resources.ts';
import { isRejected, type Profile, warningsOf } from '../../domain/shared/finding.ts';
import type { Administration } from './administration.ts';
import { type Document, repositoryOf } from './documents.ts';

/** Kinds whose files hold what is stored of them. */
const STORED_AS_WRITTEN: readonly FileKind[] = [
  'issuance-configuration',
  'credential-configuration',
  'presentation-configuration',
];

/** Kinds with findings about what is derived from their files, such as certificates and composed lists. */
const JUDGED_AS_STORED: readonly FileKind[] = ['key-chain', 'trust-list'];

/**
 * Warnings that the administrative interface would answer with.
 * @param administration has the documents applied.
 * @param own documents of one tenant, which no rule rejects.
 * @param assumed profile of the tenant if it has none. What this profile rejects is reported as a warning, too.
 */
export async function adviceOn(
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
    const judged = await judgedForm(administration, document);
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

async function judgedForm(
  { ports: { store } }: Administration,
  { kind, tenant, id, body }: Document,
): Promise<object | undefined> {
  if (STORED_AS_WRITTEN.includes(kind)) return body;
  if (kind === 'tenant') return store.forService(({ tenants }) => tenants.find(tenant));
  return JUDGED_AS_STORED.includes(kind)
    ? store.forTenant(tenant, (own) => repositoryOf(own, kind).find(id))
    : undefined;
}
