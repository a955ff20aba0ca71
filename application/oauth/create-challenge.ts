import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { WORLD } from '../transactions/known.ts';
import { attestationChallenge } from './challenges.ts';
import { assertServed } from './oauth-callers.ts';

/**
 * The challenge endpoint (attestation-based client authentication, draft 10 section 6.1). Writes nothing, and a
 * challenge may be used until it ends: wallets send the one they have with more than one request.
 */
export class CreateChallenge extends needs({ ...WORLD, random: Random, settings: ServiceSettings }) {
  /**
   * @param server the one that was asked.
   * @throws Failure `not_found` for an unknown or suspended tenant, or one without this server.
   */
  async execute(tenantId: TenantId, server: AuthorizationServer): Promise<string> {
    const { tenantConfigurations, clock } = this.ports;
    const configured = await tenantConfigurations.recent(tenantId);
    await assertServed(configured, server);
    return attestationChallenge(this.ports, tenantId, configured.issuerOf(server), clock.now());
  }
}
