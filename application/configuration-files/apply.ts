import { STAGES } from '../../domain/configuration-files/folder.ts';
import type { Failure } from '../../domain/shared/failure.ts';
import type { Administration } from './administration.ts';
import { applyResource } from './apply-resource.ts';
import { applyTenant } from './apply-tenant.ts';
import type { Document, DocumentIdentity } from './documents.ts';
import { type Outcome, processWithRetries } from './outcome.ts';

export type AppliedDocuments = {
  readonly outcomes: ReadonlyMap<Document, Outcome>;
  /** Documents that the rules reject. */
  readonly failures: ReadonlyMap<Document, Failure>;
};

/** Placeholders in a dry run, so that documents that refer to a rejected one are validated all the same. */
export type Placeholders = {
  /** Documents that others refer to and that cannot be parsed. */
  readonly missing: readonly DocumentIdentity[];
  /** @returns true if there is a placeholder for it now. */
  put(document: DocumentIdentity): Promise<boolean>;
};

type Options = {
  readonly placeholders?: Placeholders;
  /** Called for each document as soon as it is applied. */
  readonly report?: (document: Document, outcome: Outcome) => void;
};

/**
 * Applies the documents of one tenant. Each is atomic, and unchanged documents are skipped, so that an import that is repeated after a
 * crash continues.
 */
export async function apply(
  administration: Administration,
  documents: readonly Document[],
  { placeholders, report }: Options = {},
): Promise<AppliedDocuments> {
  const outcomes = new Map<Document, Outcome>();
  const failures = new Map<Document, Failure>();
  const retried: Document[] = [];
  const applyDocument = async (document: Document) => {
    if (outcomes.has(document)) return;
    for (const [each, outcome] of await applyOne(administration, document, documents)) {
      outcomes.set(each, outcome);
      report?.(each, outcome);
    }
  };
  for (const kinds of STAGES) {
    for (const placeholder of placeholders?.missing ?? []) {
      if (kinds.includes(placeholder.kind)) await placeholders?.put(placeholder);
    }
    const stageDocuments = documents.filter(({ kind }) => kinds.includes(kind));
    for (const [document, failure] of await processWithRetries(stageDocuments, applyDocument)) {
      if (await placeholders?.put(document)) failures.set(document, failure);
      else retried.push(document);
    }
  }
  // A key chain can lose a usage only after its users were changed.
  for (const [document, failure] of await processWithRetries(retried, applyDocument)) failures.set(document, failure);
  return { outcomes, failures };
}

async function applyOne(
  administration: Administration,
  document: Document,
  documents: readonly Document[],
): Promise<[Document, Outcome][]> {
  if (document.kind !== 'tenant') return [[document, await applyResource(administration, document)]];
  const keys = documents.filter((document) => document.kind === 'key-chain');
  const { outcome, keys: createdKeys } = await applyTenant(administration, document, keys);
  return [[document, outcome], ...createdKeys.map((key): [Document, Outcome] => [key, 'created'])];
}
