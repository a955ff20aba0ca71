import type { Client, ClientUpdate } from '../../domain/clients/client.ts';
import type { TenantCaller } from '../caller.ts';
import type { Clock } from '../ports/clock.ts';
import type { Store } from '../ports/store.ts';
import { assertMayChange, assertWithinOwnRestrictions } from './restrictions.ts';

type Ports = { readonly store: Store; readonly clock: Clock };

/** Changes roles, description and restrictions. What is left out stays; the client's rights change at once. */
export class UpdateClient {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found`, or `forbidden` for what would give the client more than the caller has. */
  async execute(caller: TenantCaller, clientId: string, wanted: ClientUpdate): Promise<Client> {
    const { store, clock } = this.#ports;
    assertWithinOwnRestrictions(caller, {
      ...(wanted.allowedPresentationConfigs !== undefined && {
        allowedPresentationConfigs: wanted.allowedPresentationConfigs,
      }),
      ...(wanted.allowedIssuanceConfigs !== undefined && {
        allowedIssuanceConfigs: wanted.allowedIssuanceConfigs,
      }),
    });
    return store.forTenant(
      caller.tenantId,
      async ({ clients }) => {
        const client = await clients.get(clientId);
        const changed: Client = {
          ...client,
          roles: [...new Set(wanted.roles)],
          description: wanted.description === undefined ? client.description : wanted.description,
          allowedPresentationConfigs:
            wanted.allowedPresentationConfigs === undefined
              ? client.allowedPresentationConfigs
              : wanted.allowedPresentationConfigs,
          allowedIssuanceConfigs:
            wanted.allowedIssuanceConfigs === undefined
              ? client.allowedIssuanceConfigs
              : wanted.allowedIssuanceConfigs,
          updatedAt: clock.now(),
        };
        assertMayChange(caller, client, changed);
        return clients.save(changed);
      },
      { by: caller },
    );
  }
}
