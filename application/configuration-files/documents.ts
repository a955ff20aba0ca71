import type { FolderDocument, FolderFault } from '../../domain/configuration-files/folder.ts';
import { type FileBody, type FileKind, resourceOf } from '../../domain/resources.ts';
import type { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type JsonObject, mapTexts } from '../../domain/shared/json.ts';
import { safeParseWritten } from '../../domain/shared/parse-written.ts';
import { HIDDEN } from '../../domain/shared/secrets.ts';
import type { TenantReader } from '../ports/repositories.ts';

/** A document that is right in itself. */
export type Document<Kind extends FileKind = FileKind> = {
  readonly [K in FileKind]: {
    readonly kind: K;
    readonly file: string;
    readonly tenant: TenantId;
    /** Empty for what a tenant has one of. */
    readonly id: string;
    readonly body: FileBody<K>;
  };
}[Kind];

/** A document by what it would describe. */
export type Described = Pick<Document, 'kind' | 'tenant' | 'id'>;

type Named = Pick<FolderDocument, 'kind' | 'name' | 'tenant'> & { readonly value?: JsonObject };

export function described(document: Named): Described {
  const { kind, tenant } = document;
  return { kind, tenant: tenant as TenantId, id: idOf(document) };
}

/** The name of the file (of the folder, for a tenant) unless the document says another one. */
function idOf({ kind, name, tenant, value }: Named): string {
  const member = describedBy(kind).id;
  if (member === undefined) return '';
  const given = value?.[member];
  if (typeof given === 'string') return given;
  return kind === 'tenant' ? tenant : name;
}

/** Judges a document as the administrative interface judges a body. */
export function parseDocument(document: FolderDocument): { readonly document: Document } | { readonly faults: readonly FolderFault[] } {
  const { file, kind, unfilled } = document;
  const { tenant, id } = described(document);
  const { body, alternative, id: member, read: mend = (same: JsonObject) => same } = describedBy(kind);
  const mended = mend(document.value);
  const value = member === undefined || mended[member] !== undefined ? mended : { ...mended, [member]: id };
  const isOther = alternative !== undefined && value[alternative.member] !== undefined;
  const read = safeParseWritten(isOther ? alternative.body : body, value);
  const faults = [...('errors' in read ? read.errors : []), ...hiddenSecrets(kind, value)]
    .filter(({ path }) => !unfilled.some((other) => isWithin(path, other)))
    .map((fault) => ({ file, ...fault }));
  if (kind === 'tenant' && id !== tenant) {
    faults.push({ file, path: 'id', message: `is another one than the name of the folder, "${tenant}"` });
  }
  if (faults.length > 0 || 'errors' in read || unfilled.length > 0) return { faults };
  return { document: { kind, file, tenant, id, body: read.data } as Document };
}

/** How files describe a kind. */
export function describedBy(kind: FileKind) {
  const { file } = resourceOf(kind);
  if (file === undefined) throw new Error(`No file describes a ${kind}.`);
  return file;
}

/** The stored thing as a document. What a tenant has one of is stored under a name that no document has. */
export function asDocument(kind: FileKind, stored: object, all: readonly object[] = []): Readonly<Record<string, unknown>> {
  const { id, write } = describedBy(kind);
  const document = write(stored as never, all as never[]);
  return id === undefined ? { ...document, id: undefined } : { ...document };
}

/** Where things of a kind are stored. */
export function repositoryOf(own: TenantReader, kind: FileKind): Finding {
  return own[resourceOf(kind).repository as keyof TenantReader] as unknown as Finding;
}

type Finding = { find(id: string): Promise<object | undefined>; list(): Promise<object[]> };

/** Answers show secrets so. Here it would be the secret itself. */
function hiddenSecrets(kind: FileKind, value: JsonObject): { path: string; message: string }[] {
  const { secrets = {} } = resourceOf(kind);
  const paths: string[] = [];
  mapTexts(value, (text, path) => {
    if (text === HIDDEN && Object.hasOwn(secrets, path)) paths.push(path);
    return text;
  });
  const message = 'is what answers show for a secret; give the secret by a placeholder';
  return paths.map((path) => ({ path, message }));
}

function isWithin(path: string, outer: string): boolean {
  return path === outer || path.startsWith(`${outer}.`) || outer.startsWith(`${path}.`);
}

/** A refusal of the administrative interface as faults of the file that was refused. */
export function folderFaultsOf({ file }: Pick<Document, 'file'>, { details, message }: Failure): readonly FolderFault[] {
  const errors = details.errors ?? [{ path: '', message }];
  return errors.map((error) => ({ file, ...error }));
}
