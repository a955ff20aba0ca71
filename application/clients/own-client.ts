import type { Client } from '../../domain/clients/client.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Caller } from '../caller.ts';
import { changeOwn } from '../own-changes.ts';
import type { Store } from '../ports/store.ts';

/**
 * A client that the caller may administer: of its own tenant, or any for an account that manages tenants.
 * @throws Failure `not_found`, alike for an unknown client and one of another tenant.
 */
export async function readClientFor(store: Store, caller: Caller, clientId: string): Promise<Client> {
  if (caller.tenantId !== null)
    return store.forTenant(caller.tenantId, ({ clients }) => clients.get(clientId));
  const client = await store.forService(({ clients }) => clients.find(clientId));
  if (client === undefined) throw new Failure('not_found', 'there is no such client');
  return client;
}

/** @throws Failure `conflict` when somebody changed the client since it was read. */
export async function saveClientFor(store: Store, caller: Caller, client: Client): Promise<Client> {
  return caller.tenantId === null
    ? store.forService(({ clients }) => clients.save(client), { by: caller })
    : changeOwn(store, caller, ({ clients }) => clients.save(client));
}
