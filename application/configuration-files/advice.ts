import type { FolderFault } from '../../domain/configuration-files/folder.ts';
import { type FileKind, resourceOf } from '../../domain/resources.ts';
import { warningsOf } from '../../domain/shared/finding.ts';
import type { Document } from './documents.ts';

/** Kinds whose files hold what is stored of them. */
const STORED_AS_WRITTEN: readonly FileKind[] = [
  'issuance-configuration',
  'credential-configuration',
  'presentation-configuration',
];

/** What the administrative interface would warn of. @param own documents of one tenant, which nothing refuses. */
export function adviceOn(own: readonly Document[]): FolderFault[] {
  const [profile = null] = own.flatMap((each) => (each.kind === 'tenant' ? [each.body.profile ?? null] : []));
  return own.flatMap(({ kind, file, body }) => {
    const { findings } = resourceOf(kind);
    if (findings === undefined || !STORED_AS_WRITTEN.includes(kind)) return [];
    return warningsOf(findings(body as never, profile)).map(
      ({ rule, member, concerns, message, change }) => ({
        file,
        path: member,
        message: `${message} (${rule}; concerns ${concerns}); ${change}`,
      }),
    );
  });
}
