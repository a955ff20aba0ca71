import { type FileKind, RESOURCES, resourceOf } from '../resources.ts';
import type { JsonObject } from '../shared/json.ts';

export type FolderDocument = {
  /** Path relative to the folder, with slashes. */
  readonly file: string;
  /** Name of its tenant folder, which is the tenant id. */
  readonly tenant: string;
  readonly kind: FileKind;
  /** File name without extension: the id of the object, unless the document sets another one. */
  readonly name: string;
  readonly value: JsonObject;
  /** Paths of properties with unresolved placeholders; the faults are listed already. */
  readonly unfilled: readonly string[];
};

/** A file that is no valid document; the fault is listed already. */
export type InvalidFile = Omit<FolderDocument, 'value' | 'unfilled'>;

/** A problem of a file: `path` is the dotted path of a property, or empty for the whole file. */
export type FolderFault = { readonly file: string; readonly path: string; readonly message: string };

export type FolderContents = {
  /** Sorted by tenant and file name. */
  readonly documents: readonly FolderDocument[];
  readonly invalidFiles: readonly InvalidFile[];
  readonly tenants: readonly string[];
  readonly faults: readonly FolderFault[];
  /** Removes values of environment variables from a message. */
  redact(message: string): string;
  /** Returns a document's text with its placeholders. */
  withPlaceholders(text: string): string;
};

/** Locations of files by kind: a folder, or a single file. */
const FILE_LOCATIONS = RESOURCES.flatMap((resource) => {
  if (!('file' in resource)) return [];
  const { kind, file } = resource;
  const [, folder = '', name = ''] = /^(?:(.+)\/)?([^/]+)$/.exec(file.path) ?? [];
  return [{ kind, folder, name }];
});

export type DocumentLocation = Pick<FolderDocument, 'kind' | 'name'> & { readonly format: 'json' | 'yaml' };

/**
 * Determines the kind of a file by its path within the tenant's folder.
 * @returns undefined for an unexpected file.
 */
export function locationOf(path: string): DocumentLocation | undefined {
  const [, folder = '', name = '', ending = ''] = /^(?:(.+)\/)?([^/]+)\.(json|yaml|yml)$/.exec(path) ?? [];
  const location = FILE_LOCATIONS.find((candidate) => candidate.folder === folder && (candidate.name === '*' || candidate.name === name));
  return location && { kind: location.kind, name, format: ending === 'json' ? 'json' : 'yaml' };
}

/** Path of a document of this kind, without an extension. */
export function pathOf(kind: FileKind, name: string): string {
  return resourceOf(kind).file?.path.replace('*', () => name) ?? '';
}

/** True if this folder of a tenant may contain documents. */
export function isFolder(path: string): boolean {
  return FILE_LOCATIONS.some(({ folder }) => folder === path || folder.startsWith(`${path}/`));
}

export function shortName(kind: FileKind): string {
  return kind.replace(/-configuration$/, '');
}

/** Kinds in the order of import: each stage only refers to earlier stages. */
export const STAGES: readonly (readonly FileKind[])[] = stagesOf(FILE_LOCATIONS.map(({ kind }) => kind));

function stagesOf(kinds: readonly FileKind[]): FileKind[][] {
  if (kinds.length === 0) return [];
  const refersTo = (kind: FileKind, otherKind: FileKind) => resourceOf(kind).file?.refersTo.includes(otherKind);
  const firstStage = kinds.filter((kind) => !kinds.some((otherKind) => refersTo(kind, otherKind)));
  if (firstStage.length === 0) throw new Error(`These kinds refer to each other: ${kinds.join(', ')}.`);
  return [firstStage, ...stagesOf(kinds.filter((kind) => !firstStage.includes(kind)))];
}
