import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { freshChallenge } from '../oauth/challenges.ts';
import { DpopProofs } from '../oauth/dpop-proofs.ts';
import { Random } from '../ports/random.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { WORLD } from '../transactions/known.ts';
import { C_NONCE } from './holder-keys.ts';

export type Nonces = {
  readonly cNonce: string;
  /** For the DPoP proof of the request that follows (OpenID4VCI 1.0 section 7.2, RFC 9449 section 8.2). */
  readonly dpopNonce: string | undefined;
};

/** The nonce endpoint (OpenID4VCI 1.0 section 7). Writes nothing. */
export class CreateNonce extends needs({ ...WORLD, random: Random, settings: ServiceSettings, dpopProofs: DpopProofs }) {
  /** @throws Failure `not_found` for an unknown or suspended tenant. */
  async execute(tenantId: TenantId): Promise<Nonces> {
    const { tenantConfigurations, clock, dpopProofs } = this.ports;
    const configured = await tenantConfigurations.recent(tenantId);
    const now = clock.now();
    return {
      cNonce: freshChallenge(this.ports, tenantId, C_NONCE, now),
      dpopNonce: await dpopProofs.nonce(configured, { issuer: configured.issuer, now, isResource: true }),
    };
  }
}
