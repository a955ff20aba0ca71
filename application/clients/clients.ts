import { assertMayGrant, type Client, type ClientCreation, type ClientUpdate } from '../../domain/clients/client.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { changeOwn } from '../transactions/own-changes.ts';
import { MAKING_SECRETS, makeClient, readClientFor } from './client-secrets.ts';
import { assertFreeName, assertOwnName } from './free-name.ts';
import { assertMayChange, assertMayHoldSecret, assertWithinOwnRestrictions } from './restrictions.ts';
import { type WrittenClient, withUnknownNames } from './unknown-configurations.ts';

/** The clients of the caller's tenant, in order of their ids. */
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

/** Makes a client of the caller's tenant. Its secret, given or generated, waits to be picked up once. */
export class CreateClient extends needs({ ...MAKING_SECRETS, store: Store, settings: ServiceSettings }) {
  /**
   * @throws Failure `conflict` when the id is taken, `invalid_input` when it is kept for an administrator, `forbidden`
   *   for roles that the caller lacks.
   */
  async execute(caller: TenantCaller, wanted: ClientCreation): Promise<WrittenClient> {
    const { tenantId } = caller;
    const { clientId, secret, roles, description = null } = wanted;
    const { allowedPresentationConfigs = null, allowedIssuanceConfigs = null } = wanted;
    assertMayGrant(roles, caller.roles);
    const allowed = { allowedPresentationConfigs, allowedIssuanceConfigs };
    assertWithinOwnRestrictions(caller, allowed);
    assertFreeName(this.ports.settings, clientId);
    assertOwnName(tenantId, clientId);
    const own = { clientId, tenantId, roles, description, ...allowed };
    const { client } = await makeClient(this.ports, own, 'clients:manage', secret);
    await changeOwn(this.ports.store, caller, ({ clients }) => clients.add(client));
    return withUnknownNames(caller.configured, client);
  }
}

/** Changes roles, description and restrictions. What is left out stays; the client's rights change at once. */
export class UpdateClient extends needs({ store: Store, clock: Clock }) {
  /** @throws Failure `not_found`, or `forbidden` for a client that has, or would get, more than the caller has. */
  async execute(caller: TenantCaller, clientId: string, wanted: ClientUpdate): Promise<WrittenClient> {
    const { store, clock } = this.ports;
    assertWithinOwnRestrictions(caller, defined(wanted));
    const saved = await changeOwn(store, caller, async ({ clients }) => {
      const client = await clients.get(clientId);
      const roles = [...new Set(wanted.roles)];
      const changed: Client = { ...client, ...defined(wanted), roles, updatedAt: clock.now() };
      assertMayChange(caller, client, changed);
      return clients.save(changed);
    });
    return withUnknownNames(caller.configured, saved);
  }
}

/** Removes a client of the caller's tenant; its access tokens end with it. */
export class DeleteClient extends needs({ store: Store }) {
  /** @throws Failure `not_found`, or `forbidden` for a client with rights that the caller lacks. */
  async execute(caller: TenantCaller, clientId: string): Promise<void> {
    await changeOwn(this.ports.store, caller, async ({ clients }) => {
      assertMayHoldSecret(caller, await clients.get(clientId));
      await clients.remove(clientId);
    });
  }
}
