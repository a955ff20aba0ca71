import { assertMayGrant, type Client, type ClientCreation, type ClientUpdate } from '../../domain/clients/client.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { changeTenant } from '../transactions/tenant-changes.ts';
import { assertIdNotReserved, assertNotAdministratorId } from './client-ids.ts';
import { createClient, readClientFor, SECRET_CREATION_PORTS } from './client-secrets.ts';
import { assertMayChange, assertMayHoldSecret, assertWithinOwnRestrictions } from './restrictions.ts';
import { type WrittenClient, withUnknownNames } from './unknown-configurations.ts';

export class ListClients extends needs({ store: Store }) {
  async execute({ tenantId }: TenantCaller): Promise<Client[]> {
    return this.ports.store.forTenant(tenantId, ({ clients }) => clients.list());
  }
}

export class GetClient extends needs({ store: Store }) {
  /** @throws Failure `not_found`. */
  async execute(caller: TenantCaller, clientId: string): Promise<Client> {
    return readClientFor(this.ports.store, caller, clientId);
  }
}

/** Creates a client of the caller's tenant. Its secret, given or generated, waits to be picked up once. */
export class CreateClient extends needs({ ...SECRET_CREATION_PORTS, store: Store, settings: ServiceSettings }) {
  /**
   * @throws Failure `conflict` when the id is taken, `invalid_input` when it is reserved for an administrator, `forbidden`
   *   for roles that the caller lacks.
   */
  async execute(caller: TenantCaller, creation: ClientCreation): Promise<WrittenClient> {
    const { tenantId } = caller;
    const { clientId, secret, roles, description = null } = creation;
    const { allowedPresentationConfigs = null, allowedIssuanceConfigs = null } = creation;
    assertMayGrant(roles, caller.roles);
    const restrictions = { allowedPresentationConfigs, allowedIssuanceConfigs };
    assertWithinOwnRestrictions(caller, restrictions);
    assertIdNotReserved(this.ports.settings, clientId);
    assertNotAdministratorId(tenantId, clientId);
    const clientFields = { clientId, tenantId, roles, description, ...restrictions };
    const { client } = await createClient(this.ports, clientFields, 'clients:manage', secret);
    await changeTenant(this.ports.store, caller, ({ clients }) => clients.add(client));
    return withUnknownNames(caller.tenant, client);
  }
}

/** Changes roles, description and restrictions. Absent properties are kept; the client's rights change at once. */
export class UpdateClient extends needs({ store: Store, clock: Clock }) {
  /** @throws Failure `not_found`, or `forbidden` for a client that has, or would get, more than the caller has. */
  async execute(caller: TenantCaller, clientId: string, update: ClientUpdate): Promise<WrittenClient> {
    const { store, clock } = this.ports;
    assertWithinOwnRestrictions(caller, defined(update));
    const saved = await changeTenant(store, caller, async ({ clients }) => {
      const client = await clients.get(clientId);
      const roles = [...new Set(update.roles)];
      const updatedClient: Client = { ...client, ...defined(update), roles, updatedAt: clock.now() };
      assertMayChange(caller, client, updatedClient);
      return clients.save(updatedClient);
    });
    return withUnknownNames(caller.tenant, saved);
  }
}

/** Removes a client of the caller's tenant; its access tokens become invalid. */
export class DeleteClient extends needs({ store: Store }) {
  /** @throws Failure `not_found`, or `forbidden` for a client with rights that the caller lacks. */
  async execute(caller: TenantCaller, clientId: string): Promise<void> {
    await changeTenant(this.ports.store, caller, async ({ clients }) => {
      assertMayHoldSecret(caller, await clients.get(clientId));
      await clients.remove(clientId);
    });
  }
}
