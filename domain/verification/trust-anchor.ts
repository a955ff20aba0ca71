import { strictObject, z } from 'zod';
import { fingerprintsOf } from '../formats/der/fingerprints.ts';
import { listUpTo, Reference, textUpTo } from '../shared/bounds.ts';
import { WebAddress } from '../shared/web-address.ts';
import { CREDENTIAL_SERVICE_TYPES, isCredentialIssuanceType } from '../trust-lists/select-certificates.ts';

/** The CAs of the tenant's issuing key chains, and the certificates of key chains without a CA. */
export const OWN_AUTHORITIES = { ownAuthorities: true } as const;

/** A trust anchor for presented credentials: a certificate of this service, an external certificate, or a trust list. */
export const TrustAnchorConfig = z
  .union(
    [
      strictObject({
        certificate: textUpTo(20_000).describe(
          'PEM; a CA certificate, or the certificate of an issuer. Certificates of different keys have different key identifiers',
        ),
        pin: z
          .boolean()
          .optional()
          .describe(
            'true: signatures by this certificate are accepted, regardless of its name and usage, and nothing that it ' +
              'certified. Its validity and its key are checked. For an issuer whose certificate is marked as a CA; no profile allows it',
          ),
      }),
      strictObject({
        ownAuthorities: z.literal(true).describe('all key chains of the tenant that issue credentials, at the time of the check'),
      }),
      strictObject({ keyChainId: Reference.describe('the CA of a key chain of the tenant that issues credentials') }),
      strictObject({
        trustList: WebAddress.describe(
          'address of a signed list of trusted entities (ETSI TS 119 602), or of a trusted list in XML (ETSI TS 119 612), whose signer `signedBy` names by its own certificate',
        ),
        signedBy: listUpTo(textUpTo(20_000), 20)
          .optional()
          .describe('PEM; allowed signers of the list: a certificate, or a CA. Optional only for a list of this service'),
        serviceTypes: listUpTo(
          z
            .string()
            .max(300)
            .refine(
              isCredentialIssuanceType,
              'a service type of issuers, which ends with /Issuance, or one of TrstSvc/Svctype/EAA in lists in XML',
            )
            .meta({ pattern: '^(?:[^\\u0000]+/Issuance|http://uri\\.etsi\\.org/TrstSvc/Svctype/EAA(?:/Q|/Pub-EAA)?)$' }),
          20,
        )
          .optional()
          .describe(`Services whose certificates are accepted. Default: ${CREDENTIAL_SERVICE_TYPES.join(', ')}`),
        serviceStatusAt: z
          .enum(['check', 'issuance'])
          .optional()
          .describe(
            'Time at which the status of a service is evaluated: the time of the check (default), or the time at which its issuer ' +
              'states that the credential was issued, by the history of the service. An issuer with a compromised key, or without approval, can state any time',
          ),
        follow: strictObject({
          territories: listUpTo(z.string().regex(/^[A-Z]{2}$/, 'two capital letters, such as DE'), 64)
            .optional()
            .describe('only lists of these territories of the list of lists. Default: all'),
        })
          .meta({ id: 'ListOfLists' })
          .optional()
          .describe(
            'The list is a list of lists: the lists that it points to are trusted, each with the signer that it names, one level deep and at most 64',
          ),
      }),
    ],
    'one of ownAuthorities, certificate, keyChainId, trustList',
  )
  .meta({ id: 'TrustAnchor' });

export type TrustAnchorConfig = z.infer<typeof TrustAnchorConfig>;

/** Summary of the trust anchors without addresses and certificates: host of a list, and signers by fingerprint. */
export function summarizeAnchors(anchors: readonly TrustAnchorConfig[]) {
  return anchors.map((anchor) => {
    if ('certificate' in anchor) {
      const certificate = fingerprintsOf([anchor.certificate])[0] ?? null;
      return { certificate, ...(anchor.pin === true && { pin: true }) };
    }
    if (!('trustList' in anchor)) return anchor;
    const { trustList, signedBy = [] } = anchor;
    return { trustList: URL.parse(trustList)?.host ?? null, signedBy: fingerprintsOf(signedBy) };
  });
}
