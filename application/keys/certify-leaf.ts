import { MDL_DOCUMENT_SIGNER } from '../../domain/formats/mdoc/document-signer.ts';
import { authorityAddresses } from '../../domain/keys/authority-address.ts';
import { commonNames, leafValidity, type Validity } from '../../domain/keys/certificate-profile.ts';
import { subjectNames } from '../../domain/keys/certificate-subject.ts';
import type { KeyChain, KeyLeaf, KeyRoot, KeyUsage } from '../../domain/keys/key-chain.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import type { Organization } from '../../domain/tenants/organization.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Clock } from '../ports/clock.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';

/** Data of the tenant in its certificates. */
export type SubjectOrganization = Pick<Organization, 'organizationIdentifier' | 'contact'>;

export type LeafToCertify = Validity & {
  readonly tenantId: string;
  readonly usages: readonly KeyUsage[];
  readonly subjectName: string;
  /** Public address: its host becomes the subject alternative name, and the authority publishes below it. */
  readonly publicUrl: string;
  readonly certificateSubject: SubjectOrganization;
  readonly key: StoredKey;
  readonly root: KeyRoot;
};

/** The next leaf of a key chain's internal CA, with the current settings. */
export function leafOf(
  { settings, clock }: { readonly settings: ServiceSettings; readonly clock: Clock },
  { tenantId, usages, active, certValidityDays }: KeyChain,
  root: KeyRoot,
  certificateSubject: SubjectOrganization,
): LeafToCertify {
  return {
    tenantId,
    usages,
    // Readers that refer to the key chain by its certificate names find them unchanged.
    subjectName: subjectNames(active.certificates[0] ?? '').commonName ?? tenantId,
    publicUrl: settings.publicUrl,
    certificateSubject,
    key: active.key,
    root,
    ...leafValidity(clock.now(), certValidityDays, root.notAfter),
  };
}

/**
 * Issues a leaf of the internal CA. A key that signs credentials gets a second certificate for mdocs: wallets and readers of driving
 * licences require one with an extended key usage that excludes SD-JWT VCs and tokens.
 */
export async function certifyLeaf(authority: CertificateAuthority, leaf: LeafToCertify): Promise<KeyLeaf> {
  const { usages, key, notAfter } = leaf;
  return {
    key,
    certificates: [await issue(authority, leaf)],
    ...(usages.includes('signing') && { documentSigner: [await certifyDocumentSigner(authority, leaf)] }),
    notAfter,
  };
}

/** Issues the certificate for mdocs (ISO/IEC 18013-5 section B.1.4). @returns DER in standard base64. */
export function certifyDocumentSigner(authority: CertificateAuthority, leaf: LeafToCertify): Promise<string> {
  return issue(authority, leaf, [MDL_DOCUMENT_SIGNER]);
}

function issue(authority: CertificateAuthority, leaf: LeafToCertify, extendedKeyUsages?: readonly string[]): Promise<string> {
  const { tenantId, subjectName, publicUrl, notBefore, notAfter, key, root } = leaf;
  // ISO/IEC 18013-5 table B.3: a document signer bears the country of its CA.
  const { country, organization } = subjectNames(root.certificate);
  return authority.issue(
    {
      kind: 'leaf',
      subject: {
        commonName: commonNames(subjectName).leaf,
        ...defined({ country, organization }),
        // ISO/IEC 18013-5 table B.3 has no such name.
        ...(extendedKeyUsages === undefined && identifierFields(leaf)),
      },
      publicJwk: key.publicJwk,
      dnsNames: [new URL(publicUrl).hostname],
      notBefore,
      notAfter,
      ...defined({ extendedKeyUsages }),
      ...issuerFields(leaf, root.key.publicJwk),
      ...(extendedKeyUsages === undefined && accessFields(leaf)),
    },
    { key: signingKey(tenantId, root.key), certificate: root.certificate },
  );
}

/** NCP-l-eudiwrp: access certificates of legal persons (ETSI TS 119 411-8 section 5.3). */
const LEGAL_PERSON_ACCESS = '0.4.0.194118.1.2';

/**
 * Issuer-related fields of all certificates of an internal CA (ISO/IEC 18013-5 tables B.1 and B.3, ETSI EN 319 412-2 section 4.4.1).
 * @param key of the CA.
 */
export function issuerFields(
  { tenantId, publicUrl, certificateSubject }: Pick<LeafToCertify, 'tenantId' | 'publicUrl' | 'certificateSubject'>,
  key: PublicJwk,
) {
  const { revocationList, certificate } = authorityAddresses(publicUrl, tenantId, key);
  const issuerContact = certificateSubject.contact ?? issuerIdentifier({ publicUrl }, tenantId);
  return { revocationList, issuerCertificate: certificate, issuerContact };
}

function identifierFields({ certificateSubject: { organizationIdentifier } }: LeafToCertify) {
  return organizationIdentifier === null ? {} : { organizationIdentifier };
}

/** ETSI TS 119 411-8 section 6.6.1: contact of the relying party, and the policy for its kind of person. */
function accessFields({ usages, certificateSubject }: LeafToCertify) {
  if (!usages.includes('access')) return {};
  const { contact, organizationIdentifier } = certificateSubject;
  return {
    ...(contact !== null && { contact }),
    ...(contact !== null && organizationIdentifier !== null && { policies: [LEGAL_PERSON_ACCESS] }),
  };
}
