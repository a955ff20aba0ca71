import type { JsonObject } from '../../domain/shared/json.ts';

/** What a file of the folder describes, by where it stands. */
export const DOCUMENT_KINDS = [
  'tenant',
  'key-chain',
  'registrar',
  'presentation',
  'trust-list',
  'issuance',
  'credential',
  'client',
] as const;
export type DocumentKind = (typeof DOCUMENT_KINDS)[number];

/** One file of the folder with its placeholders filled in. */
export type FolderDocument = {
  /** Path from the folder, with slashes. */
  readonly file: string;
  /** Name of the folder that it stands in, which is the id of the tenant. */
  readonly tenant: string;
  readonly kind: DocumentKind;
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

/** `<tenant>/<name>` */
const SINGLE: Readonly<Record<string, DocumentKind>> = { tenant: 'tenant', registrar: 'registrar' };
/** `<tenant>/<folder>/<name>` */
const MANY: Readonly<Record<string, DocumentKind>> = {
  keys: 'key-chain',
  clients: 'client',
  presentation: 'presentation',
  'trust-lists': 'trust-list',
  'issuance/credentials': 'credential',
};

export type DocumentPlace = Pick<FolderDocument, 'kind' | 'name'> & { readonly format: 'json' | 'yaml' };

/**
 * What a file is, by its path within the folder of its tenant.
 * @returns undefined for a file that has no business there.
 */
export function placeOf(path: string): DocumentPlace | undefined {
  const [, folder = '', name = '', ending = ''] = /^(?:(.+)\/)?([^/]+)\.(json|yaml|yml)$/.exec(path) ?? [];
  const format = ending === 'json' ? 'json' : 'yaml';
  const kind = kindOf(folder, name);
  return kind === undefined ? undefined : { kind, name, format };
}

function kindOf(folder: string, name: string): DocumentKind | undefined {
  if (folder === 'issuance' && name === 'config') return 'issuance';
  const [table, key] = folder === '' ? [SINGLE, name] : [MANY, folder];
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** Where a document of this kind is written to, without an ending. */
export function pathOf(kind: DocumentKind, name: string): string {
  if (kind === 'issuance') return 'issuance/config';
  const [folder] = Object.entries(MANY).find(([, of]) => of === kind) ?? [];
  return folder === undefined ? kind : `${folder}/${name}`;
}

/** Whether documents stand somewhere in this folder of a tenant. */
export function isFolder(path: string): boolean {
  return path === 'issuance' || Object.hasOwn(MANY, path);
}
