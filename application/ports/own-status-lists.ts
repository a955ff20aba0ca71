import type { TenantId } from '../../domain/shared/ids.ts';

/** Status of entries of lists that this service itself keeps. */
export abstract class OwnStatusLists {
  /** @returns undefined for a list or an index that does not exist. */
  abstract statusAt(tenantId: TenantId, listId: string, index: number): Promise<number | undefined>;
}
