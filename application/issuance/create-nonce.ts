import type { TenantId } from '../../domain/shared/ids.ts';
import { WORLD } from '../known.ts';
import { needs } from '../needs.ts';
import { freshChallenge } from '../oauth/challenges.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { C_NONCE } from './holder-keys.ts';

/** The nonce endpoint (OpenID4VCI 1.0 section 7). Writes nothing. */
export class CreateNonce extends needs({ ...WORLD, random: Random, settings: ServiceSettings }) {
  /** @throws Failure `not_found` for an unknown or suspended tenant. */
  async execute(tenantId: TenantId): Promise<string> {
    const { tenantConfigurations, clock } = this.ports;
    await tenantConfigurations.recent(tenantId);
    return freshChallenge(this.ports, tenantId, C_NONCE, clock.now());
  }
}
