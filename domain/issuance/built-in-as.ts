import { z } from 'zod';

/** The authorization server that is part of the issuer. */
export const BuiltInAs = z.strictObject({
  enabled: z
    .boolean()
    .default(true)
    .describe(
      'false: it is no server of this issuer. Metadata do not name it, its endpoints are not found, and its access tokens ' +
        'end. Offers by pre-authorized code and configurations with `iaeActions` need it',
    ),
  walletInitiated: z
    .boolean()
    .default(false)
    .describe(
      'Lets wallets begin without an offer. The page asks for approval and knows no user, so anybody gets what has ' +
        'no `iaeActions`. At the chained and external servers wallets may always begin so',
    ),
});
