import type { DocumentKind } from '../../../domain/resources.ts';

/** Documents of one kind have a table of their own. */
export function tableOf(kind: DocumentKind): string {
  return `${kind.replaceAll('-', '_')}s`;
}

/** Where the body of a document is sealed. */
export function placeOf(table: string, tenantId: string, id: string): string {
  return `${table}/body/${tenantId}/${id}`;
}

/** By code unit: a database would order by its locale. */
export const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);
export const byClientId = (a: { readonly clientId: string }, b: { readonly clientId: string }) => (a.clientId < b.clientId ? -1 : 1);

/** The start of a sealed body holds what was drawn for this seal alone, so no two writes have the same. */
export const MARK_LENGTH = 64;
