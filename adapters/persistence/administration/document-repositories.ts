import type { DocumentRepositories, Documents } from '../../../application/ports/repositories.ts';
import { DOCUMENTS } from '../../../domain/resources.ts';

/** Builds one repository per kind of document, keyed by its name. */
export function documentRepositories(create: (resource: (typeof DOCUMENTS)[number]) => Documents<never>): DocumentRepositories {
  return Object.fromEntries(
    DOCUMENTS.map((resource) => [resource.repository, create(resource)]),
  ) as Partial<DocumentRepositories> as DocumentRepositories;
}
