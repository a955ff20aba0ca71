import { makeChallenge } from '../../domain/oauth/challenge.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { ServiceSettings } from '../ports/settings.ts';
import type { Store } from '../ports/store.ts';
import type { TenantConfigurations } from '../tenant-configuration.ts';
import { C_NONCE } from './holder-keys.ts';

type Ports = {
  readonly store: Store;
  readonly tenantConfigurations: TenantConfigurations;
  readonly clock: Clock;
  readonly random: Random;
  readonly settings: ServiceSettings;
};

/** The nonce endpoint (OpenID4VCI 1.0 section 7). Writes nothing. */
export class CreateNonce {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /** @throws Failure `not_found` for an unknown or suspended tenant. */
  async execute(tenantId: TenantId): Promise<string> {
    const { store, tenantConfigurations, clock, random, settings } = this.#ports;
    if (tenantConfigurations.recent(tenantId)?.state.status !== 'active') {
      tenantConfigurations.ofWallet(await store.read(tenantId).state());
    }
    const [key] = settings.nonceKeys;
    if (key === undefined) throw new Error('no key for nonces');
    return makeChallenge(key, tenantId, C_NONCE, clock.now(), random.bytes(10));
  }
}
