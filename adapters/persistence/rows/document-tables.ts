import type { DocumentKind } from '../../../domain/resources.ts';

/** Each kind of document has its own table. */
export function tableOf(kind: DocumentKind): string {
  return `${kind.replaceAll('-', '_')}s`;
}

export function documentContext(table: string, tenantId: string, id: string): string {
  return `${table}/body/${tenantId}/${id}`;
}

/** Compares by code unit: a database would order by its locale. */
export const byId = (a: { readonly id: string }, b: { readonly id: string }) => (a.id < b.id ? -1 : 1);
export const byClientId = (a: { readonly clientId: string }, b: { readonly clientId: string }) => (a.clientId < b.clientId ? -1 : 1);

/** The start of a sealed body contains its random nonce, so no two writes have the same. */
export const MARK_LENGTH = 64;
