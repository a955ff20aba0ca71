import { pathOf, STAGES, shortName } from '../../domain/configuration-files/folder.ts';
import { escapePlaceholders, placeholderOf, SecretVariableNames } from '../../domain/configuration-files/placeholder.ts';
import { type FileKind, resourceOf } from '../../domain/resources.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type Json, type JsonObject, mapStrings } from '../../domain/shared/json.ts';
import { needs } from '../needs.ts';
import { Store } from '../ports/store.ts';
import { asDocument, fileFormatOf, repositoryOf } from './documents.ts';

export type ExportedFile = {
  /** Path from the folder of the tenant, with slashes. */
  readonly path: string;
  readonly document: JsonObject;
};

/** A secret of a file that is replaced by a variable. */
export type ExportedSecret = { readonly name: string; readonly path: string; readonly member: string };

export type ExportedTenant = { readonly files: readonly ExportedFile[]; readonly secrets: readonly ExportedSecret[] };

/**
 * Exports a tenant as files for the import, without secrets and without generated data (keys, times, versions). The export is
 * deterministic.
 */
export class ExportTenant extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute(id: TenantId): Promise<ExportedTenant> {
    const names = new SecretVariableNames(id);
    const files: ExportedFile[] = [];
    const secrets: ExportedSecret[] = [];
    for (const { kind, name, document } of await documentsOf(this.ports.store, id)) {
      const path = freePath(files, pathOf(kind, name));
      const secretProperties = resourceOf(kind).secrets ?? {};
      const exported = mapStrings(orderProperties(kind, document), (text, member) => {
        const secret = Object.hasOwn(secretProperties, member) ? secretProperties[member] : undefined;
        if (secret === undefined) return escapePlaceholders(text);
        const variable = names.next(name, secret.variable);
        secrets.push({ name: variable, path, member });
        return placeholderOf(variable);
      });
      files.push({ path, document: exported as JsonObject });
    }
    return { files, secrets };
  }
}

type NamedDocument = { readonly kind: FileKind; readonly name: string; readonly document: object };

function documentsOf(store: Store, id: TenantId): Promise<readonly NamedDocument[]> {
  return store.forTenant(id, async (repositories) => {
    const documents: NamedDocument[] = [];
    for (const kind of STAGES.flat()) {
      const { id: member } = fileFormatOf(kind);
      const resources = kind === 'tenant' ? [await repositories.tenant.get()] : await repositoryOf(repositories, kind).list();
      for (const resource of resources) {
        const document = asDocument(kind, resource, resources);
        documents.push({ kind, name: member === undefined ? shortName(kind) : String(document[member]), document });
      }
    }
    return documents;
  });
}

/** Removes empty properties, and orders the others as in the schema. */
function orderProperties(kind: FileKind, document: object): JsonObject {
  const valuesByName = new Map(Object.entries(document));
  const members = Object.keys(fileFormatOf(kind).body.shape).flatMap((name): [string, Json][] => {
    const value = valuesByName.get(name) as Json | undefined;
    return value === null || value === undefined ? [] : [[name, value]];
  });
  return Object.fromEntries(members);
}

/** A file name for an id: ids may differ only in case, or contain characters that file systems do not support. */
function freePath(files: readonly ExportedFile[], requestedPath: string): string {
  const usedPaths = new Set(files.map(({ path }) => path.toLowerCase()));
  const safePath = requestedPath.replaceAll(':', '_');
  for (let number = 1; ; number++) {
    const path = `${safePath}${number === 1 ? '' : `-${number}`}.json`;
    if (!usedPaths.has(path.toLowerCase())) return path;
  }
}
