import { MDL_DOCUMENT_SIGNER } from '../../domain/formats/mdoc/document-signer.ts';
import { commonNames, leafValidity, type Validity } from '../../domain/keys/certificate-profile.ts';
import { subjectNames } from '../../domain/keys/certificate-subject.ts';
import type { KeyChain, KeyLeaf, KeyRoot, KeyUsage } from '../../domain/keys/key-chain.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { defined } from '../../domain/shared/defined.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Clock } from '../ports/clock.ts';
import type { ServiceSettings } from '../ports/settings.ts';

export type LeafToCertify = Validity & {
  readonly tenantId: string;
  readonly usages: readonly KeyUsage[];
  readonly subjectName: string;
  /** Host name that wallets see; it becomes the subject alternative name. */
  readonly dnsName: string;
  readonly key: StoredKey;
  readonly root: KeyRoot;
};

/** What the internal CA of a key chain certifies next, unless something in it shall be another one. */
export function leafOf(
  { settings, clock }: { readonly settings: ServiceSettings; readonly clock: Clock },
  { tenantId, usages, active, certValidityDays }: KeyChain,
  root: KeyRoot,
): LeafToCertify {
  return {
    tenantId,
    usages,
    // Those who know the key chain by the names in its certificate find them again.
    subjectName: subjectNames(active.certificates[0] ?? '').commonName ?? tenantId,
    dnsName: new URL(settings.publicUrl).hostname,
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

function issue(
  authority: CertificateAuthority,
  { tenantId, subjectName, dnsName, notBefore, notAfter, key, root }: LeafToCertify,
  extendedKeyUsages?: readonly string[],
): Promise<string> {
  // ISO/IEC 18013-5 table B.3: a document signer bears the country of its CA.
  const { country, organization } = subjectNames(root.certificate);
  return authority.issue(
    {
      kind: 'leaf',
      subject: {
        commonName: commonNames(subjectName).leaf,
        ...defined({ country, organization }),
      },
      publicJwk: key.publicJwk,
      dnsNames: [dnsName],
      notBefore,
      notAfter,
      ...defined({ extendedKeyUsages }),
    },
    { key: signingKey(tenantId, root.key), certificate: root.certificate },
  );
}
