import { z } from 'zod';
import { listUpTo, Reference, textUpTo, wholeNumber } from '../shared/bounds.ts';
import { LONGEST_LIFETIME_SECONDS } from '../shared/token-lifetime.ts';
import { IssuerAddress } from '../shared/web-address.ts';

/** An authorization server of this service that has users log in at another one. */
export const ChainedAsConfig = z
  .strictObject({
    enabled: z.boolean().default(true).describe('false: its addresses answer 404 and its tokens are refused'),
    upstream: z
      .strictObject({
        issuer: IssuerAddress.describe('found by OpenID Connect Discovery'),
        clientId: textUpTo(500).describe('our client there'),
        clientSecret: textUpTo(4096).optional().describe('none for a public client; PKCE is used always'),
        scopes: listUpTo(textUpTo(200), 50).default(['openid', 'profile']),
        userinfo: z
          .boolean()
          .optional()
          .describe(
            'false: its userinfo endpoint is not asked; unless stated it is, where it has one, and a login fails when that ' +
              'gives no claims of the same user, for example since access tokens are for another API',
          ),
      })
      .describe(
        'the OpenID provider where users log in; register {PUBLIC_URL}/{tenant}/chained-as/callback there. The claims ' +
          'of its ID token, of its userinfo endpoint, and of its access token where that is a JWT of its own, reach the claims webhook as ' +
          '`identity.token_claims`',
      ),
    token: z
      .strictObject({
        lifetimeSeconds: wholeNumber(60, LONGEST_LIFETIME_SECONDS)
          .default(3600)
          .describe('of access tokens; those that no key is bound to live 300 seconds at most'),
        signingKeyId: Reference.nullish().describe(
          'key chain that signs access tokens; the default of the tenant unless given',
        ),
      })
      .default({ lifetimeSeconds: 3600 }),
    requireDPoP: z.boolean().default(true).describe('false: access tokens without a key are issued, too'),
    confirmUnverifiedWallets: z
      .boolean()
      .default(true)
      .describe(
        'ask users, after their login, before a browser goes to an address that is not registered for a wallet that ' +
          'authenticated (`walletClients`, `walletProviders`); switched off, anybody who sends a ' +
          'link to a user with a session at the upstream gets the credentials of that user unseen',
      ),
  })
  .meta({ id: 'ChainedAsConfig' });
export type ChainedAsConfig = z.infer<typeof ChainedAsConfig>;
