import type { TenantId } from '../../domain/shared/ids.ts';

/** Status of entries of lists that this service itself keeps. */
export abstract class OwnStatusLists {
  /** @returns undefined for a list or an index that does not exist. */
  abstract statusAt(tenantId: TenantId, listId: string, index: number): Promise<number | undefined>;
  /**
   * Whose certificates the published token of a list carries.
   * @returns DER in standard base64, leaf first; undefined for a list that does not exist or cannot be signed now.
   */
  abstract signerOf(tenantId: TenantId, listId: string): Promise<readonly string[] | undefined>;
}
