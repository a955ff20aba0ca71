import { z } from 'zod';
import type { PortsOf } from '../../../application/needs.ts';
import { CreateChallenge } from '../../../application/oauth/create-challenge.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { family, type Route, reply, route } from '../route.ts';

const USE_CASES = { createChallenge: CreateChallenge };

/** Where wallets get what their proof of possession has to answer. */
export const challengeRoutes = family(USE_CASES, routesOf);

function routesOf({ createChallenge }: PortsOf<typeof USE_CASES>): readonly Route[] {
  return [
    route({
      method: 'post',
      path: '/:tenant/challenge',
      rateLimit: { group: 'nonce', perAddress: true },
      summary:
        'Get a challenge for a client attestation (attestation-based client authentication section 6.1)',
      tag: 'Wallet: issuance',
      surface: 'oauth',
      access: 'public',
      params: z.object({ tenant: z.string().max(63) }),
      responses: { 200: z.object({ attestation_challenge: z.string() }) },
      async handle({ params }) {
        return reply(200, {
          attestation_challenge: await createChallenge.execute(params.tenant as TenantId, 'built-in'),
        });
      },
    }),
  ];
}
