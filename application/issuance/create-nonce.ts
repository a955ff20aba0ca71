import { makeChallenge } from '../../domain/oauth/challenge.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { TenantConfigurations } from '../tenant-configurations.ts';
import { C_NONCE } from './holder-keys.ts';

/** The nonce endpoint (OpenID4VCI 1.0 section 7). Writes nothing. */
export class CreateNonce extends needs({
  store: Store,
  tenantConfigurations: TenantConfigurations,
  clock: Clock,
  random: Random,
  settings: ServiceSettings,
}) {
  /** @throws Failure `not_found` for an unknown or suspended tenant. */
  async execute(tenantId: TenantId): Promise<string> {
    const { store, tenantConfigurations, clock, random, settings } = this.ports;
    if (tenantConfigurations.recent(tenantId)?.state.status !== 'active') {
      tenantConfigurations.ofWallet(await store.read(tenantId).state());
    }
    const [key] = settings.nonceKeys;
    if (key === undefined) throw new Error('no key for nonces');
    return makeChallenge(key, tenantId, C_NONCE, clock.now(), random.bytes(10));
  }
}
