import type { DocumentKind } from '../config/import/folder-document.ts';
import type { Failure } from '../domain/shared/failure.ts';
import { importClient } from './import-clients.ts';
import {
  importCredential,
  importIssuance,
  importPresentation,
  importRegistrar,
  importTrustList,
} from './import-configurations.ts';
import type { ImportDocument } from './import-documents.ts';
import { createKeyChain } from './import-keys.ts';
import { type Outcome, settle } from './import-outcome.ts';
import { importTenant } from './import-tenant.ts';
import type { ImportTools } from './import-tools.ts';

export type ImportResult = {
  readonly outcomes: ReadonlyMap<ImportDocument, Outcome>;
  /** What the rules refuse. */
  readonly refused: ReadonlyMap<ImportDocument, Failure>;
};

/** Things name only what comes before them. */
const ORDER: readonly (readonly DocumentKind[])[] = [
  ['tenant'],
  ['key-chain', 'registrar'],
  ['presentation', 'trust-list', 'issuance'],
  ['credential'],
  ['client'],
];

/** In a rehearsal, what names a document that is refused is judged all the same. */
export type StandIns = {
  /** Documents that are not among those to import, since they cannot be read. */
  readonly broken: readonly Missing[];
  /** @returns whether something stands in for it now. */
  put(missing: Missing): Promise<boolean>;
};
export type Missing = Pick<ImportDocument, 'kind' | 'tenant' | 'id'>;

type Options = {
  readonly standIns?: StandIns;
  /** Called for each document as soon as it is imported. */
  readonly report?: (document: ImportDocument, outcome: Outcome) => void;
};

/**
 * Imports the documents of one tenant. Each is one step that is done or not, and what is as wanted is not touched, so
 * that whoever begins again after a crash goes on where it ended.
 */
export async function importAll(
  tools: ImportTools,
  documents: readonly ImportDocument[],
  { standIns, report }: Options = {},
): Promise<ImportResult> {
  const outcomes = new Map<ImportDocument, Outcome>();
  const refused = new Map<ImportDocument, Failure>();
  const again: ImportDocument[] = [];
  const work = async (document: ImportDocument) => {
    if (outcomes.has(document)) return;
    const done = await importOne(tools, document, documents);
    for (const [each, outcome] of done) {
      outcomes.set(each, outcome);
      report?.(each, outcome);
    }
  };
  for (const kinds of ORDER) {
    for (const each of standIns?.broken ?? []) if (kinds.includes(each.kind)) await standIns?.put(each);
    const some = documents.filter(({ kind }) => kinds.includes(kind));
    for (const [document, failure] of await settle(some, work)) {
      if (await standIns?.put(document)) refused.set(document, failure);
      else again.push(document);
    }
  }
  // A key chain loses a usage only after what needed it was changed.
  for (const [document, failure] of await settle(again, work)) refused.set(document, failure);
  return { outcomes, refused };
}

async function importOne(
  tools: ImportTools,
  document: ImportDocument,
  all: readonly ImportDocument[],
): Promise<[ImportDocument, Outcome][]> {
  if (document.kind !== 'tenant') return [[document, await importOwn(tools, document)]];
  const keys = all.filter((each) => each.kind === 'key-chain');
  const { outcome, keys: made } = await importTenant(tools, document, keys);
  return [[document, outcome], ...made.map((key): [ImportDocument, Outcome] => [key, 'created'])];
}

function importOwn(
  tools: ImportTools,
  document: Exclude<ImportDocument, { kind: 'tenant' }>,
): Promise<Outcome> {
  switch (document.kind) {
    case 'key-chain':
      return createKeyChain(tools, document);
    case 'registrar':
      return importRegistrar(tools, document);
    case 'presentation':
      return importPresentation(tools, document);
    case 'trust-list':
      return importTrustList(tools, document);
    case 'issuance':
      return importIssuance(tools, document);
    case 'credential':
      return importCredential(tools, document);
    case 'client':
      return importClient(tools, document);
  }
}
