import type { DocumentRepositories, Documents } from '../../../application/ports/repositories.ts';
import { DOCUMENTS } from '../../../domain/resources.ts';

/** A repository for each kind of document, by its name. */
export function documentRepositories(make: (resource: (typeof DOCUMENTS)[number]) => Documents<never>): DocumentRepositories {
  return Object.fromEntries(
    DOCUMENTS.map((resource) => [resource.repository, make(resource)]),
  ) as Partial<DocumentRepositories> as DocumentRepositories;
}
