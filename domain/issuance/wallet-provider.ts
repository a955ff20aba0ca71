import { hash } from 'node:crypto';
import { strictObject, type z } from 'zod';
import { CertificatePem } from '../formats/der/certificate-pem.ts';
import { parsePemCertificates } from '../formats/der/pem.ts';
import { listUpTo, textUpTo } from '../shared/bounds.ts';
import { RedirectAddress } from '../shared/redirect-address.ts';

/** Data about a wallet provider that its trust lists do not contain. */
export const WalletProvider = strictObject({
  certificates: listUpTo(CertificatePem, 10).describe(
    'Certificates of the provider, one PEM each: the one on the trust list, or the one that signs its attestations',
  ),
  client_ids: listUpTo(textUpTo(500), 50).describe(
    'Names of its wallets, `sub` of their attestations. An attestation of another provider with such a name is rejected',
  ),
  redirect_uris: listUpTo(RedirectAddress, 50)
    .optional()
    .describe(
      'Redirect addresses of these wallets, compared exactly. The chained server redirects a browser to one of these ' +
        'without consent; for every other address the user is shown the target. The page of the built-in server always asks',
    ),
}).meta({ id: 'WalletProvider' });
export type WalletProvider = z.infer<typeof WalletProvider>;

/** The signer of an attestation. */
export type Attester = {
  /** `x5c`: DER in standard base64, leaf first. */
  readonly chain: readonly string[];
  /** SHA-256 of the anchor's DER, base64url. */
  readonly anchor: string;
};

/**
 * The registration of a wallet that a provider attested.
 * @returns undefined when the client id belongs to other providers.
 */
export function registrationOf(
  providers: readonly WalletProvider[],
  clientId: string,
  { chain: [leaf = ''], anchor }: Attester,
): { readonly redirectUris: readonly string[] } | undefined {
  const claimingProviders = providers.filter(({ client_ids: ids }) => ids.includes(clientId));
  const matchingProviders = claimingProviders.filter(({ certificates }) =>
    certificates.some((pem) => {
      const [certificate = ''] = parsePemCertificates(pem, 1) ?? [];
      return certificate === leaf || hash('sha256', Buffer.from(certificate, 'base64'), 'base64url') === anchor;
    }),
  );
  if (claimingProviders.length > 0 && matchingProviders.length === 0) return undefined;
  return { redirectUris: matchingProviders.flatMap(({ redirect_uris: uris = [] }) => uris) };
}
