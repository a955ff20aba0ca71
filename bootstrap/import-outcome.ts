import { isDeepStrictEqual } from 'node:util';
import type { FolderFault } from '../config/import/folder-document.ts';
import { Failure } from '../domain/shared/failure.ts';
import type { TenantId } from '../domain/shared/ids.ts';
import type { ImportDocument } from './import-documents.ts';

export type Outcome = 'created' | 'changed' | 'unchanged';

/** Members of stored documents that no document of the folder has. */
const OF_THE_STORE = new Set(['createdAt', 'updatedAt']);

/**
 * Whether two documents say the same, in whatever order; a member that is null says what an absent one says.
 * @param stored its times do not count.
 */
export function isSame(stored: object, wanted: object): boolean {
  return isDeepStrictEqual(plain(stored), plain(wanted));
}

function plain(document: object): unknown {
  const members = Object.entries(document).filter(
    ([name, value]) => value !== null && !OF_THE_STORE.has(name),
  );
  return JSON.parse(JSON.stringify(Object.fromEntries(members)));
}

/** Writes unless the stored document, if any, is as wanted already. */
export async function unlessSame(
  stored: object | undefined,
  wanted: object,
  write: () => Promise<unknown>,
): Promise<Outcome> {
  // What a tenant has one of is stored under a name of its own.
  const before = stored === undefined || 'id' in wanted ? stored : { ...stored, id: undefined };
  if (before !== undefined && isSame(before, wanted)) return 'unchanged';
  await write();
  return before === undefined ? 'created' : 'changed';
}

export function tenantIdOf({ tenant }: Pick<ImportDocument, 'tenant'>): TenantId {
  return tenant as TenantId;
}

/** A refusal of the administrative interface as faults of the file that was refused. */
export function faultsOf(
  { file }: Pick<ImportDocument, 'file'>,
  { details, message }: Failure,
): FolderFault[] {
  const errors = details.errors ?? [{ path: '', message }];
  return errors.map((error) => ({ file, ...error }));
}

/**
 * Does all the work in an order in which it can be done: what is refused is tried again after the others, as long as
 * that gets anywhere, since things name each other.
 * @returns what was refused to the end.
 */
export async function settle<T>(
  all: readonly T[],
  work: (each: T) => Promise<void>,
): Promise<ReadonlyMap<T, Failure>> {
  let pending = all;
  for (;;) {
    const refused = new Map<T, Failure>();
    for (const each of pending) {
      try {
        await work(each);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        refused.set(each, error);
      }
    }
    if (refused.size === 0 || refused.size === pending.length) return refused;
    pending = [...refused.keys()];
  }
}
