import { z } from 'zod';
import { listUpTo, textUpTo } from '../shared/bounds.ts';
import type { JsonObject } from '../shared/json.ts';
import { algorithmOf, readPublicJwk } from '../shared/jwk.ts';
import { RedirectAddress } from '../shared/redirect-address.ts';
import { WebAddress } from '../shared/web-address.ts';
import { written } from '../shared/written.ts';

/** A public key that signatures can be checked with, for the algorithm that it names, if any. */
function isVerificationKey(jwk: unknown): boolean {
  const key = readPublicJwk(jwk);
  const { alg, use } = jwk as Record<string, unknown>;
  if (key === undefined || (use !== undefined && use !== 'sig')) return false;
  const algorithm = algorithmOf(key);
  return alg === undefined || alg === algorithm || (alg === 'Ed25519' && algorithm === 'EdDSA');
}

const VerificationKey = z
  .record(z.string(), z.json())
  .refine(isVerificationKey, 'a public key for ES256, ES384, ES512 or EdDSA, without private members');

/** A wallet that authenticates with a key of its own (RFC 7523 section 2.2) in place of an attestation. */
export const WalletClient = z
  .strictObject({
    client_id: textUpTo(500).describe(
      'Name of the wallet; `iss` and `sub` of its assertions. Requests in this name need one',
    ),
    jwks: written({ keys: listUpTo(VerificationKey, 20) })
      .transform((value) => value as unknown as { keys: JsonObject[] })
      .optional()
      .describe('Its public keys: ES256, ES384, ES512 or EdDSA'),
    jwks_uri: WebAddress.optional().describe('Where they are found, in place of `jwks`'),
    redirect_uris: listUpTo(RedirectAddress, 50)
      .optional()
      .describe(
        'The only `redirect_uri` values that it may use, compared letter by letter. Unless stated it may use any, and the user ' +
          'is shown where the browser goes',
      ),
  })
  .refine((client) => (client.jwks === undefined) !== (client.jwks_uri === undefined), {
    message: 'give either jwks or jwks_uri',
  })
  .meta({
    id: 'WalletClient',
    allOf: [{ oneOf: [{ required: ['jwks'] }, { required: ['jwks_uri'] }] }],
  });
export type WalletClient = z.infer<typeof WalletClient>;
