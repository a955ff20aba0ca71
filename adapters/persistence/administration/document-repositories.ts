import type { DocumentRepositories, Documents } from '../../../application/ports/repositories.ts';
import { DOCUMENT_KINDS, type DocumentKind, resourceOf } from '../../../domain/resources.ts';

/** A repository for each kind that is kept as a whole, by its name. */
export function documentRepositories(
  make: (kind: DocumentKind, name: keyof DocumentRepositories) => Documents<never>,
): DocumentRepositories {
  const named = DOCUMENT_KINDS.map((kind) => {
    const name = resourceOf(kind).repository as keyof DocumentRepositories;
    return [name, make(kind, name)];
  });
  return Object.fromEntries(named) as DocumentRepositories;
}
