import type { FolderDocument, FolderFault } from '../../domain/configuration-files/folder.ts';
import { type FileBody, type FileKind, resourceOf } from '../../domain/resources.ts';
import type { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { type JsonObject, mapStrings } from '../../domain/shared/json.ts';
import { safeParseInput } from '../../domain/shared/parse-input.ts';
import { HIDDEN } from '../../domain/shared/secrets.ts';
import type { TenantReader } from '../ports/repositories.ts';

export type Document<Kind extends FileKind = FileKind> = {
  readonly [K in FileKind]: {
    readonly kind: K;
    readonly file: string;
    readonly tenant: TenantId;
    /** Empty for singletons of a tenant. */
    readonly id: string;
    readonly body: FileBody<K>;
  };
}[Kind];

export type DocumentIdentity = Pick<Document, 'kind' | 'tenant' | 'id'>;

type NamedDocument = Pick<FolderDocument, 'kind' | 'name' | 'tenant'> & { readonly value?: JsonObject };

export function identityOf(document: NamedDocument): DocumentIdentity {
  const { kind, tenant } = document;
  return { kind, tenant: tenant as TenantId, id: idOf(document) };
}

/** The name of the file (of the folder, for a tenant) unless the document contains an id. */
function idOf({ kind, name, tenant, value }: NamedDocument): string {
  const member = fileFormatOf(kind).id;
  if (member === undefined) return '';
  const writtenId = value?.[member];
  if (typeof writtenId === 'string') return writtenId;
  return kind === 'tenant' ? tenant : name;
}

/** Validates a document like a body of the administrative interface. */
export function parseDocument(document: FolderDocument): { readonly document: Document } | { readonly faults: readonly FolderFault[] } {
  const { file, kind, unfilled } = document;
  const { tenant, id } = identityOf(document);
  const { body, alternative, id: member, read: migrate = (unchanged: JsonObject) => unchanged } = fileFormatOf(kind);
  const migrated = migrate(document.value);
  const value = member === undefined || migrated[member] !== undefined ? migrated : { ...migrated, [member]: id };
  const isOther = alternative !== undefined && value[alternative.member] !== undefined;
  const parsed = safeParseInput(isOther ? alternative.body : body, value);
  const faults = [...('errors' in parsed ? parsed.errors : []), ...hiddenSecrets(kind, value)]
    .filter(({ path }) => !unfilled.some((unfilledPath) => isWithin(path, unfilledPath)))
    .map((fault) => ({ file, ...fault }));
  if (kind === 'tenant' && id !== tenant) {
    faults.push({ file, path: 'id', message: `differs from the name of the folder, "${tenant}"` });
  }
  if (faults.length > 0 || 'errors' in parsed || unfilled.length > 0) return { faults };
  return { document: { kind, file, tenant, id, body: parsed.data } as Document };
}

/** The file format of a kind. */
export function fileFormatOf(kind: FileKind) {
  const { file } = resourceOf(kind);
  if (file === undefined) throw new Error(`No file describes a ${kind}.`);
  return file;
}

/** The document of a stored resource. Singletons are stored under a name that no document has. */
export function asDocument(kind: FileKind, resource: object, siblings: readonly object[] = []): Readonly<Record<string, unknown>> {
  const { id, write } = fileFormatOf(kind);
  const document = write(resource as never, siblings as never[]);
  return id === undefined ? { ...document, id: undefined } : { ...document };
}

export function repositoryOf(repositories: TenantReader, kind: FileKind): DocumentReader {
  return repositories[resourceOf(kind).repository as keyof TenantReader] as unknown as DocumentReader;
}

type DocumentReader = { find(id: string): Promise<object | undefined>; list(): Promise<object[]> };

/** Finds masked secrets, as shown in answers; they would be imported as the secret itself. */
function hiddenSecrets(kind: FileKind, value: JsonObject): { path: string; message: string }[] {
  const { secrets = {} } = resourceOf(kind);
  const paths: string[] = [];
  mapStrings(value, (text, path) => {
    if (text === HIDDEN && Object.hasOwn(secrets, path)) paths.push(path);
    return text;
  });
  const message = 'is a masked secret; set the secret by a placeholder';
  return paths.map((path) => ({ path, message }));
}

function isWithin(path: string, outer: string): boolean {
  return path === outer || path.startsWith(`${outer}.`) || outer.startsWith(`${path}.`);
}

/** A failure of the administrative interface as faults of the file. */
export function folderFaultsOf({ file }: Pick<Document, 'file'>, { details, message }: Failure): readonly FolderFault[] {
  const errors = details.errors ?? [{ path: '', message }];
  return errors.map((error) => ({ file, ...error }));
}
