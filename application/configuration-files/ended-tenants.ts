import type { FolderFault } from '../../domain/configuration-files/folder.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { hasEnded } from '../../domain/tenants/tenant-end.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import type { Document } from './documents.ts';

type Ports = { readonly store: Store; readonly clock: Clock };

/**
 * Tenants of a folder whose time is over: they stay ended, and keep no other tenant from being served.
 * A file that says so of a tenant that is still there is none of them: nobody is ended by a time that was mistyped.
 * @returns what to say of each.
 */
export async function endedTenants(
  { store, clock }: Ports,
  documents: ReadonlyMap<TenantId, readonly Document[]>,
): Promise<ReadonlyMap<TenantId, FolderFault>> {
  const now = clock.now();
  const ended = new Map<TenantId, FolderFault>();
  for (const [id, own] of documents) {
    const document = own.find((each) => each.kind === 'tenant');
    if (document?.kind !== 'tenant') continue;
    const stored = await store.forService(({ tenants }) => tenants.find(id));
    const { endsAt: written } = document.body;
    const endsAt = stored === undefined ? written && new Date(written) : stored.endsAt;
    if (!endsAt || !hasEnded({ endsAt }, now)) continue;
    const doing = stored === undefined ? 'it is not made again' : 'it is being removed';
    const message = `the time of this tenant was over at ${endsAt.toISOString()}: ${doing}, and its files are passed over`;
    ended.set(id, { file: document.file, path: 'endsAt', message });
  }
  return ended;
}
