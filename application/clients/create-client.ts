import { assertMayGrant, type Client, type ClientCreation } from '../../domain/clients/client.ts';
import type { TenantCaller } from '../caller.ts';
import type { Cipher } from '../ports/cipher.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { Secrets } from '../ports/secrets.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import { makeSecret } from './client-secret.ts';
import { assertFreeName, assertOwnName } from './free-name.ts';
import { assertWithinOwnRestrictions } from './restrictions.ts';

type Ports = {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly secrets: Secrets;
  readonly cipher: Cipher;
  readonly settings: ServiceSettings;
};

/** Makes a client of the caller's tenant. Its secret, given or generated, waits to be picked up once. */
export class CreateClient {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * @throws Failure `conflict` when the id is taken, `invalid_input` when it is kept for an administrator, `forbidden`
   *   for roles that the caller lacks.
   */
  async execute(caller: TenantCaller, wanted: ClientCreation): Promise<Client> {
    const { store, clock, settings } = this.#ports;
    assertMayGrant(wanted.roles, caller.roles);
    const { allowedPresentationConfigs = null, allowedIssuanceConfigs = null } = wanted;
    assertWithinOwnRestrictions(caller, { allowedPresentationConfigs, allowedIssuanceConfigs });
    assertFreeName(settings, wanted.clientId);
    assertOwnName(caller.tenantId, wanted.clientId);
    const { secretHash, pickUp } = await makeSecret(
      this.#ports,
      wanted.clientId,
      'clients:manage',
      wanted.secret,
    );
    const now = clock.now();
    const client: Client = {
      clientId: wanted.clientId,
      tenantId: caller.tenantId,
      roles: [...new Set(wanted.roles)],
      description: wanted.description ?? null,
      allowedPresentationConfigs,
      allowedIssuanceConfigs,
      secretHash,
      pickUp,
      version: 1,
      createdAt: now,
      updatedAt: now,
    };
    await store.forTenant(caller.tenantId, ({ clients }) => clients.add(client), { by: caller });
    return client;
  }
}
