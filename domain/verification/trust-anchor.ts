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
          'PEM; a CA certificate, or the own certificate of an issuer. Certificates of different keys have different key identifiers',
        ),
        pin: z
          .boolean()
          .optional()
          .describe(
            'true: what is signed by this very certificate is accepted, whatever it calls itself and is for, and nothing that it ' +
              'certified. Its times and its key are judged. For an issuer whose own certificate says that it is a CA; no profile allows it',
          ),
      }),
      strictObject({ ownAuthorities: z.literal(true).describe('every own key chain that issues, as they are at each moment') }),
      strictObject({ keyChainId: Reference.describe('the CA of an own key chain that issues') }),
      strictObject({
        trustList: WebAddress.describe(
          'address of a signed list of trusted entities (ETSI TS 119 602), or of a trusted list in XML (ETSI TS 119 612), whose signer `signedBy` names by its own certificate',
        ),
        signedBy: listUpTo(textUpTo(20_000), 20)
          .optional()
          .describe('PEM; who may sign the list: its certificate, or a CA. Left out only for a list of this service'),
        serviceTypes: listUpTo(
          z
            .string()
            .max(300)
            .refine(
              isCredentialIssuanceType,
              'the type of a service that issues credentials, which ends with /Issuance, or one of TrstSvc/Svctype/EAA in lists in XML',
            )
            .meta({ pattern: '^(?:[^\\u0000]+/Issuance|http://uri\\.etsi\\.org/TrstSvc/Svctype/EAA(?:/Q|/Pub-EAA)?)$' }),
          20,
        )
          .optional()
          .describe(`Services whose certificates are accepted; unless stated ${CREDENTIAL_SERVICE_TYPES.join(', ')}`),
        serviceStatusAt: z
          .enum(['check', 'issuance'])
          .optional()
          .describe(
            'Whether the status of a service counts at the time of the check, which is the default, or at the time at which its issuer ' +
              'says that the credential was issued, by the history of the service. An issuer that lost its key, or its standing, can say any time',
          ),
        follow: strictObject({
          territories: listUpTo(z.string().regex(/^[A-Z]{2}$/, 'two capital letters, such as DE'), 64)
            .optional()
            .describe('only lists of these territories, as the list of lists names them; all unless given'),
        })
          .meta({ id: 'ListOfLists' })
          .optional()
          .describe(
            'The list is a list of lists: those that it points to count, each under the signer that it names, one step far and at most 64',
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
