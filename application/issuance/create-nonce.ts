import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { issueChallenge } from '../oauth/challenges.ts';
import { DpopProofs } from '../oauth/dpop-proofs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';
import { C_NONCE } from './holder-keys.ts';

export type Nonces = {
  readonly cNonce: string;
  /** Nonce for the DPoP proof of the next request (OpenID4VCI 1.0 section 7.2, RFC 9449 section 8.2). */
  readonly dpopNonce: string | undefined;
};

/** The nonce endpoint (OpenID4VCI 1.0 section 7). Nothing is stored. */
export class CreateNonce extends needs({ ...TRANSACTION_PORTS, random: Random, settings: ServiceSettings, dpopProofs: DpopProofs }) {
  /** @throws Failure `not_found` for an unknown or suspended tenant. */
  async execute(tenantId: TenantId): Promise<Nonces> {
    const { tenantConfigurations, clock, dpopProofs } = this.ports;
    const tenant = await tenantConfigurations.readRecent(tenantId);
    const now = clock.now();
    return {
      cNonce: issueChallenge(this.ports, tenantId, C_NONCE, now),
      dpopNonce: await dpopProofs.nonce(tenant, { issuer: tenant.issuer, now, isResource: true }),
    };
  }
}
