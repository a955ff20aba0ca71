import { type FileKind, RESOURCES, resourceOf } from '../resources.ts';
import type { JsonObject } from '../shared/json.ts';

/** One file of a folder with its placeholders filled in. */
export type FolderDocument = {
  /** Path from the folder, with slashes. */
  readonly file: string;
  /** Name of the folder that it stands in, which is the id of the tenant. */
  readonly tenant: string;
  readonly kind: FileKind;
  /** Of the file, without its ending: the id of what it describes, unless the document says another one. */
  readonly name: string;
  readonly value: JsonObject;
  /** Paths of members with placeholders that could not be filled in; the fault is listed already. */
  readonly unfilled: readonly string[];
};

/** A file that could not be read as a document; the fault is listed already. */
export type UnreadFile = Omit<FolderDocument, 'value' | 'unfilled'>;

/** What is wrong, and where: `path` is that of a member, dotted, or empty for the whole file. */
export type FolderFault = { readonly file: string; readonly path: string; readonly message: string };

/** A folder with a folder for each tenant, as it was read. */
export type FolderContents = {
  /** By tenant and file, in the order of their names. */
  readonly documents: readonly FolderDocument[];
  readonly unread: readonly UnreadFile[];
  /** Names of the folders of the tenants. */
  readonly tenants: readonly string[];
  readonly faults: readonly FolderFault[];
  /** A message without what came out of the environment. */
  redact(message: string): string;
  /** A text of a document as the document has it. */
  asWritten(text: string): string;
};

/** Where files of a kind stand: all of them in a folder, or one of a name. */
const PLACES = RESOURCES.flatMap((resource) => {
  if (!('file' in resource)) return [];
  const { kind, file } = resource;
  const [, folder = '', name = ''] = /^(?:(.+)\/)?([^/]+)$/.exec(file.path) ?? [];
  return [{ kind, folder, name }];
});

export type DocumentPlace = Pick<FolderDocument, 'kind' | 'name'> & { readonly format: 'json' | 'yaml' };

/**
 * What a file is, by its path within the folder of its tenant.
 * @returns undefined for a file that has no business there.
 */
export function placeOf(path: string): DocumentPlace | undefined {
  const [, folder = '', name = '', ending = ''] = /^(?:(.+)\/)?([^/]+)\.(json|yaml|yml)$/.exec(path) ?? [];
  const place = PLACES.find((each) => each.folder === folder && (each.name === '*' || each.name === name));
  return place && { kind: place.kind, name, format: ending === 'json' ? 'json' : 'yaml' };
}

/** Where a document of this kind is written to, without an ending. */
export function pathOf(kind: FileKind, name: string): string {
  return resourceOf(kind).file?.path.replace('*', () => name) ?? '';
}

/** Whether documents stand somewhere in this folder of a tenant. */
export function isFolder(path: string): boolean {
  return PLACES.some(({ folder }) => folder === path || folder.startsWith(`${path}/`));
}

/** What people call a kind. */
export function shortName(kind: FileKind): string {
  return kind.replace(/-configuration$/, '');
}

/** Kinds in the order in which they are imported: each stage names only what comes before it. */
export const STAGES: readonly (readonly FileKind[])[] = stagesOf(PLACES.map(({ kind }) => kind));

function stagesOf(kinds: readonly FileKind[]): FileKind[][] {
  if (kinds.length === 0) return [];
  const refersTo = (kind: FileKind, other: FileKind) => resourceOf(kind).file?.refersTo.includes(other);
  const first = kinds.filter((kind) => !kinds.some((other) => refersTo(kind, other)));
  if (first.length === 0) throw new Error(`These kinds refer to each other: ${kinds.join(', ')}.`);
  return [first, ...stagesOf(kinds.filter((kind) => !first.includes(kind)))];
}
