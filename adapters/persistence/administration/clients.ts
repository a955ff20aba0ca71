import type { EntityManager } from '@mikro-orm/core';
import type { Client } from '../../../domain/clients/client.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import type { ClientMacs } from '../client-macs.ts';
import { ClientRow, RemovedClientRow } from '../rows/administration.row.ts';
import { clientColumns, readClient } from '../rows/tenant-columns.ts';
import { insertUnique } from './not-found.ts';

export function staleWriteError(resource: string): Failure {
  return new Failure('conflict', `the ${resource} was changed concurrently; read it again and repeat the change`);
}

export async function addClient(em: EntityManager, macs: ClientMacs, client: Client): Promise<void> {
  await insertUnique('a client with this id already exists', () =>
    em.insert(ClientRow, { ...clientColumns(client), mac: macs.make(client) }),
  );
  const { tenantId, clientId } = client;
  if (tenantId === null) return;
  await em.nativeDelete(RemovedClientRow, { tenantId, clientId }, { filters: { tenant: false } });
}

export async function saveClient(em: EntityManager, macs: ClientMacs, client: Client, tenantId: TenantId | null): Promise<Client> {
  const { clientId, tenantId: _tenantId, createdAt: _createdAt, ...columns } = clientColumns(client);
  const data = { ...columns, mac: macs.make({ ...client, tenantId }), version: client.version + 1 };
  const where = { clientId, tenantId, version: client.version };
  const changedRows = await em.nativeUpdate(ClientRow, where, data, { filters: { tenant: false } });
  if (changedRows === 0) throw staleWriteError('client');
  return { ...client, version: client.version + 1 };
}

/** @returns undefined if there is no row, or if its MAC is invalid, so that the service did not write it. */
export function verifiedClient(macs: ClientMacs, row: ClientRow | null): Client | undefined {
  return row === null ? undefined : macs.verify(readClient(row), row.mac);
}
