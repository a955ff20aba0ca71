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

/** What a tenant says of itself that its certificates carry. */
export type CertificateHolder = Pick<Organization, 'organizationIdentifier' | 'contact'>;

export type LeafToCertify = Validity & {
  readonly tenantId: string;
  readonly usages: readonly KeyUsage[];
  readonly subjectName: string;
  /** Address that wallets see: its host becomes the subject alternative name, and the authority publishes below it. */
  readonly publicUrl: string;
  readonly holder: CertificateHolder;
  readonly key: StoredKey;
  readonly root: KeyRoot;
};

/** What the internal CA of a key chain certifies next, unless something in it shall be another one. */
export function leafOf(
  { settings, clock }: { readonly settings: ServiceSettings; readonly clock: Clock },
  { tenantId, usages, active, certValidityDays }: KeyChain,
  root: KeyRoot,
  holder: CertificateHolder,
): LeafToCertify {
  return {
    tenantId,
    usages,
    // Those who know the key chain by the names in its certificate find them again.
    subjectName: subjectNames(active.certificates[0] ?? '').commonName ?? tenantId,
    publicUrl: settings.publicUrl,
    holder,
    key: active.key,
    root,
    ...leafValidity(clock.now(), certValidityDays, root.notAfter),
  };
}

/**
 * A leaf of the internal CA. A key that signs credentials gets a second certificate for mdocs: wallets and readers
 * of driving licences want one that is good for nothing else, so it cannot serve SD-JWT VCs and tokens, too.
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

/** The certificate for mdocs alone (ISO/IEC 18013-5 section B.1.4). @returns DER in standard base64. */
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
        // ISO/IEC 18013-5 table B.3 knows no such name.
        ...(extendedKeyUsages === undefined && identified(leaf)),
      },
      publicJwk: key.publicJwk,
      dnsNames: [new URL(publicUrl).hostname],
      notBefore,
      notAfter,
      ...defined({ extendedKeyUsages }),
      ...issuerMembers(leaf, root.key.publicJwk),
      ...(extendedKeyUsages === undefined && accessMembers(leaf)),
    },
    { key: signingKey(tenantId, root.key), certificate: root.certificate },
  );
}

/** NCP-l-eudiwrp: access certificates of legal persons (ETSI TS 119 411-8 section 5.3). */
const LEGAL_PERSON_ACCESS = '0.4.0.194118.1.2';

/**
 * What every certificate of an internal CA says of that (ISO/IEC 18013-5 tables B.1 and B.3, ETSI EN 319 412-2 section 4.4.1).
 * @param key of the CA.
 */
export function issuerMembers({ tenantId, publicUrl, holder }: Pick<LeafToCertify, 'tenantId' | 'publicUrl' | 'holder'>, key: PublicJwk) {
  const { revocationList, certificate } = authorityAddresses(publicUrl, tenantId, key);
  const issuerContact = holder.contact ?? issuerIdentifier({ publicUrl }, tenantId);
  return { revocationList, issuerCertificate: certificate, issuerContact };
}

function identified({ holder: { organizationIdentifier } }: LeafToCertify) {
  return organizationIdentifier === null ? {} : { organizationIdentifier };
}

/** ETSI TS 119 411-8 section 6.6.1: how the relying party is reached, and for what kind of person this was issued. */
function accessMembers({ usages, holder }: LeafToCertify) {
  if (!usages.includes('access')) return {};
  const { contact, organizationIdentifier } = holder;
  return {
    ...(contact !== null && { contact }),
    ...(contact !== null && organizationIdentifier !== null && { policies: [LEGAL_PERSON_ACCESS] }),
  };
}
