import { STAGES } from '../../domain/configuration-files/folder.ts';
import type { Failure } from '../../domain/shared/failure.ts';
import type { Administration } from './administration.ts';
import { applyResource } from './apply-resource.ts';
import { applyTenant } from './apply-tenant.ts';
import type { Described, Document } from './documents.ts';
import { type Outcome, settle } from './outcome.ts';

export type Applied = {
  readonly outcomes: ReadonlyMap<Document, Outcome>;
  /** What the rules refuse. */
  readonly refused: ReadonlyMap<Document, Failure>;
};

/** In a dry run, what names a document that is refused is judged all the same. */
export type Placeholders = {
  /** What is named by others and is not among the documents, since it cannot be read. */
  readonly missing: readonly Described[];
  /** @returns whether something is in its place now. */
  put(missing: Described): Promise<boolean>;
};

type Options = {
  readonly placeholders?: Placeholders;
  /** Called for each document as soon as it is applied. */
  readonly report?: (document: Document, outcome: Outcome) => void;
};

/**
 * Applies the documents of one tenant. Each is one step that is done or not, and what is as wanted is not touched, so
 * that an import that begins again after a crash goes on where that ended.
 */
export async function apply(
  administration: Administration,
  documents: readonly Document[],
  { placeholders, report }: Options = {},
): Promise<Applied> {
  const outcomes = new Map<Document, Outcome>();
  const refused = new Map<Document, Failure>();
  const again: Document[] = [];
  const work = async (document: Document) => {
    if (outcomes.has(document)) return;
    for (const [each, outcome] of await applyOne(administration, document, documents)) {
      outcomes.set(each, outcome);
      report?.(each, outcome);
    }
  };
  for (const kinds of STAGES) {
    for (const each of placeholders?.missing ?? []) {
      if (kinds.includes(each.kind)) await placeholders?.put(each);
    }
    const some = documents.filter(({ kind }) => kinds.includes(kind));
    for (const [document, failure] of await settle(some, work)) {
      if (await placeholders?.put(document)) refused.set(document, failure);
      else again.push(document);
    }
  }
  // A key chain loses a usage only after what needed it was changed.
  for (const [document, failure] of await settle(again, work)) refused.set(document, failure);
  return { outcomes, refused };
}

async function applyOne(administration: Administration, document: Document, all: readonly Document[]): Promise<[Document, Outcome][]> {
  if (document.kind !== 'tenant') return [[document, await applyResource(administration, document)]];
  const keys = all.filter((each) => each.kind === 'key-chain');
  const { outcome, keys: made } = await applyTenant(administration, document, keys);
  return [[document, outcome], ...made.map((key): [Document, Outcome] => [key, 'created'])];
}
