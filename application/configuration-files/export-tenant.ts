import { pathOf, STAGES, shortName } from '../../domain/configuration-files/folder.ts';
import { escapePlaceholders, placeholderOf, SecretNames } from '../../domain/configuration-files/placeholder.ts';
import { type FileKind, resourceOf } from '../../domain/resources.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type Json, type JsonObject, mapTexts } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { Store } from '../ports/store.ts';
import { asDocument, describedBy, repositoryOf } from './documents.ts';

export type ExportedFile = {
  /** Path from the folder of the tenant, with slashes. */
  readonly path: string;
  readonly document: JsonObject;
};

/** A variable that a file names. */
export type ExportedSecret = { readonly name: string; readonly path: string; readonly member: string };

export type ExportedTenant = { readonly files: readonly ExportedFile[]; readonly secrets: readonly ExportedSecret[] };

/**
 * A tenant as files that the import takes, without a secret and without what the service adds (keys, times, releases).
 * The same tenant always makes the same files.
 */
export class ExportTenant extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute(id: TenantId): Promise<ExportedTenant> {
    const names = new SecretNames(id);
    const files: ExportedFile[] = [];
    const secrets: ExportedSecret[] = [];
    for (const { kind, name, document } of await documentsOf(this.ports.store, id)) {
      const path = freePath(files, pathOf(kind, name));
      const known = resourceOf(kind).secrets ?? {};
      const written = mapTexts(ordered(kind, document), (text, member) => {
        const secret = Object.hasOwn(known, member) ? known[member] : undefined;
        if (secret === undefined) return escapePlaceholders(text);
        const variable = names.next(name, secret.variable);
        secrets.push({ name: variable, path, member });
        return placeholderOf(variable);
      });
      files.push({ path, document: written as JsonObject });
    }
    return { files, secrets };
  }
}

type Named = { readonly kind: FileKind; readonly name: string; readonly document: object };

function documentsOf(store: Store, id: TenantId): Promise<readonly Named[]> {
  return store.forTenant(id, async (own) => {
    const all: Named[] = [];
    for (const kind of STAGES.flat()) {
      const { id: member } = describedBy(kind);
      const stored = kind === 'tenant' ? [await own.tenant.get()] : await repositoryOf(own, kind).list();
      for (const each of stored) {
        const document = asDocument(kind, each, stored);
        all.push({ kind, name: member === undefined ? shortName(kind) : String(document[member]), document });
      }
    }
    return all;
  });
}

/** Members without a value are left out; the others stand in the order in which they are described. */
function ordered(kind: FileKind, document: object): JsonObject {
  const given = new Map(Object.entries(document));
  const members = Object.keys(describedBy(kind).body.shape).flatMap((name): [string, Json][] => {
    const value = given.get(name) as Json | undefined;
    return value === null || value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(members);
}

/** Ids differ in case alone, or have letters that file systems do not take. */
function freePath(files: readonly ExportedFile[], wanted: string): string {
  const taken = new Set(files.map(({ path }) => path.toLowerCase()));
  const plain = wanted.replaceAll(':', '_');
  for (let number = 1; ; number++) {
    const path = `${plain}${number === 1 ? '' : `-${number}`}.json`;
    if (!taken.has(path.toLowerCase())) return path;
  }
}
