import { type Certificate, parseCertificate } from '../formats/der/certificate.ts';
import { attributesOf } from '../formats/der/name.ts';
import { MDL_DOCUMENT_SIGNER } from '../formats/mdoc/document-signer.ts';
import type { Finding } from '../shared/finding.ts';
import type { KeyChain, KeyUsage } from './key-chain.ts';

const ATTRIBUTE = { country: '2.5.4.6', organizationIdentifier: '2.5.4.97' } as const;
const EXTENSION = {
  alternativeName: '2.5.29.17',
  issuerAlternativeName: '2.5.29.18',
  revocationList: '2.5.29.31',
  policies: '2.5.29.32',
  extendedKeyUsage: '2.5.29.37',
} as const;
const DAY_MS = 24 * 60 * 60 * 1000;
/** ISO/IEC 18013-5 table B.3 */
const MAX_SIGNER_DAYS = 457;

type Check = readonly [what: string, isMet: (certificate: Certificate) => boolean];

const hasAttribute = ({ subject }: Certificate, type: string) => attributesOf(Buffer.from(subject, 'hex'), type).length > 0;
const hasExtension =
  (oid: string): Check[1] =>
  ({ extensions }) =>
    extensions.has(oid);

const COUNTRY: Check = ['a country', (certificate) => hasAttribute(certificate, ATTRIBUTE.country)];
const SUBJECT_KEY: Check = ['a subject key identifier', ({ subjectKeyId }) => subjectKeyId !== undefined];
const REVOCATION_LIST: Check = ['a CRL distribution point', hasExtension(EXTENSION.revocationList)];

/** Expectations of verifiers about imported certificates, by key usage. */
const PROFILES: readonly {
  readonly usage: KeyUsage;
  readonly rules: Pick<Finding, 'rule' | 'profileRule'> & ({ rule: string } | { profileRule: string });
  readonly concerns: string;
  readonly message: string;
  readonly checks: readonly Check[];
}[] = [
  {
    usage: 'signing',
    rules: { rule: 'ISO/IEC 18013-5 table B.3' },
    concerns: 'readers of driving licences, and of other mdocs that follow the same profile',
    message: 'readers reject documents that are signed with such a certificate',
    checks: [
      COUNTRY,
      SUBJECT_KEY,
      [
        `the extended key usage ${MDL_DOCUMENT_SIGNER}, critical`,
        ({ extendedKeyUsage, criticalExtensions }) =>
          extendedKeyUsage?.has(MDL_DOCUMENT_SIGNER) === true && criticalExtensions.has(EXTENSION.extendedKeyUsage),
      ],
      REVOCATION_LIST,
      ['an issuer alternative name', hasExtension(EXTENSION.issuerAlternativeName)],
      [
        `an expiry within ${MAX_SIGNER_DAYS} days`,
        ({ notBefore, notAfter }) => notAfter.getTime() - notBefore.getTime() <= MAX_SIGNER_DAYS * DAY_MS,
      ],
    ],
  },
  {
    usage: 'access',
    // Such certificates exist in the ecosystem of the European Digital Identity Wallet only.
    rules: { profileRule: 'ETSI TS 119 411-8 section 6.6.1' },
    concerns: 'wallets of the European Digital Identity',
    message: 'wallets reject requests that are signed with such a certificate',
    checks: [
      COUNTRY,
      ['an organization identifier', (certificate) => hasAttribute(certificate, ATTRIBUTE.organizationIdentifier)],
      ['a certificate policy', hasExtension(EXTENSION.policies)],
      ['a contact among the alternative names', hasExtension(EXTENSION.alternativeName)],
      REVOCATION_LIST,
    ],
  },
];

/** Missing properties of an imported certificate; one finding per usage. */
export function findImportedCertificateProblems({ usages, active }: KeyChain): Finding[] {
  const certificate = parseCertificate(Buffer.from(active.certificates[0] ?? '', 'base64'));
  if (certificate === undefined) return [];
  return PROFILES.filter(({ usage }) => usages.includes(usage)).flatMap(({ rules, concerns, message, checks }) => {
    const missingProperties = checks.filter(([, isMet]) => !isMet(certificate)).map(([what]) => what);
    if (missingProperties.length === 0) return [];
    const change = `request a certificate from its authority with ${missingProperties.join(', ')}`;
    return [{ ...rules, member: 'certificates', concerns, message, change }];
  });
}
