import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { attestationChallenge } from './challenges.ts';
import { assertServed } from './oauth-callers.ts';

/**
 * The challenge endpoint (attestation-based client authentication, draft 10 section 6.1). Nothing is stored, and a
 * challenge may be used until it expires: wallets send one challenge with several requests.
 */
export class CreateChallenge extends needs({ ...TRANSACTION_PORTS, random: Random, settings: ServiceSettings }) {
  /**
   * @param server authorization server of the endpoint.
   * @throws Failure `not_found` for an unknown or suspended tenant, or one without this server.
   */
  async execute(tenantId: TenantId, server: AuthorizationServer): Promise<string> {
    const { tenantConfigurations, clock } = this.ports;
    const tenant = await tenantConfigurations.readRecent(tenantId);
    await assertServed(tenant, server);
    return attestationChallenge(this.ports, tenantId, tenant.issuerOf(server), clock.now());
  }
}
