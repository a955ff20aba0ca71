import type { FolderFault } from '../../domain/configuration-files/folder.ts';
import { type FileKind, resourceOf } from '../../domain/resources.ts';
import { warningsOf } from '../../domain/shared/finding.ts';
import type { Administration } from './administration.ts';
import { type Document, repositoryOf } from './documents.ts';

/** Kinds whose files hold what is stored of them. */
const STORED_AS_WRITTEN: readonly FileKind[] = [
  'issuance-configuration',
  'credential-configuration',
  'presentation-configuration',
];

/**
 * Warnings that the administrative interface would answer with.
 * @param administration has the documents applied.
 * @param own documents of one tenant, which no rule rejects.
 */
export async function adviceOn(
  administration: Administration,
  own: readonly Document[],
): Promise<readonly FolderFault[]> {
  const [profile = null] = own.flatMap((each) => (each.kind === 'tenant' ? [each.body.profile ?? null] : []));
  const advice: FolderFault[] = [];
  for (const document of own) {
    const { kind, file } = document;
    const { findings } = resourceOf(kind);
    const judged = await judgedForm(administration, document);
    if (findings === undefined || judged === undefined) continue;
    for (const { rule, member, concerns, message, change } of warningsOf(
      findings(judged as never, profile),
    )) {
      advice.push({ file, path: member, message: `${message} (${rule}; concerns ${concerns}); ${change}` });
    }
  }
  return advice;
}

async function judgedForm(
  { ports: { store } }: Administration,
  { kind, tenant, id, body }: Document,
): Promise<object | undefined> {
  if (STORED_AS_WRITTEN.includes(kind)) return body;
  // What a list lacks is seen in the list that is composed of the file.
  return kind === 'trust-list'
    ? store.forTenant(tenant, (own) => repositoryOf(own, kind).find(id))
    : undefined;
}
