import { readCertificate } from '../../domain/formats/der/certificate.ts';
import { MDL_DOCUMENT_SIGNER } from '../../domain/formats/mdoc/document-signer.ts';
import {
  caValidity,
  commonNames,
  DEFAULT_CERT_VALIDITY_DAYS,
  leafValidity,
  type Validity,
} from '../../domain/keys/certificate-profile.ts';
import type { KeyChain, KeyLeaf, KeyRoot, KeyUsage } from '../../domain/keys/key-chain.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import type { SigningAlgorithm } from '../../domain/shared/jwk.ts';
import type { CertificateAuthority } from '../ports/certificate-authority.ts';
import type { Clock } from '../ports/clock.ts';
import type { Kms } from '../ports/kms.ts';
import type { Random } from '../ports/random.ts';

const DEFAULT_ROTATION_DAYS = 90;

type Ports = {
  readonly kms: Kms;
  readonly certificateAuthority: CertificateAuthority;
  readonly random: Random;
  readonly clock: Clock;
};

export type NewKeyChain = {
  readonly tenantId: string;
  readonly id?: string;
  readonly description?: string;
  readonly usages: readonly KeyUsage[];
  readonly algorithm?: SigningAlgorithm;
  /** KMS provider of both keys. Absent: the tenant's, else the default one. */
  readonly provider?: string;
  readonly subjectName: string;
  /** ISO 3166-1 alpha-2; it and the organization stand in the CA, and in each leaf of it. */
  readonly country?: string;
  readonly organization?: string;
  /** Host name that wallets see; it becomes the leaf's subject alternative name. */
  readonly dnsName: string;
  readonly certValidityDays?: number;
  /** A CA of the tenant that certifies the leaf, instead of one of its own. */
  readonly root?: KeyRoot;
};

/**
 * Makes an internal CA and a leaf that it certifies. A self-signed leaf would be simpler, but HAIP 1.0 section 6.1.1
 * refuses one, and the anchor that others configure would change with each rotation.
 */
export async function createKeyChain(ports: Ports, wanted: NewKeyChain): Promise<KeyChain> {
  const now = ports.clock.now();
  const certValidityDays = wanted.certValidityDays ?? DEFAULT_CERT_VALIDITY_DAYS;
  // Before any key is made: a refused request must not leave keys behind in an external KMS.
  leafValidity(now, certValidityDays, (wanted.root ?? caValidity(now)).notAfter);

  const root = wanted.root ?? (await makeRoot(ports, wanted, now));
  const active = await makeLeaf(ports, wanted, root, now, certValidityDays);
  return {
    id: wanted.id ?? ports.random.token(),
    tenantId: wanted.tenantId,
    ...(wanted.description === undefined ? {} : { description: wanted.description }),
    usages: wanted.usages,
    kmsProvider: active.key.handle.kms,
    root,
    active,
    rotationEnabled: false,
    rotationIntervalDays: DEFAULT_ROTATION_DAYS,
    certValidityDays,
    createdAt: now,
    updatedAt: now,
  };
}

async function makeRoot(ports: Ports, wanted: NewKeyChain, now: Date): Promise<KeyRoot> {
  const { tenantId, algorithm = 'ES256', provider, subjectName, country, organization } = wanted;
  const key = await ports.kms.generate(tenantId, algorithm, provider);
  const validity = caValidity(now);
  const certificate = await ports.certificateAuthority.issue(
    {
      kind: 'ca',
      subject: {
        commonName: commonNames(subjectName).ca,
        ...(country !== undefined && { country }),
        ...(organization !== undefined && { organization }),
      },
      publicJwk: key.publicJwk,
      ...validity,
    },
    { key: signingKey(tenantId, key) },
  );
  return { key, certificate, notAfter: validity.notAfter };
}

async function makeLeaf(
  ports: Ports,
  wanted: NewKeyChain,
  root: KeyRoot,
  now: Date,
  days: number,
): Promise<KeyLeaf> {
  const { tenantId, algorithm = 'ES256', provider } = wanted;
  const key = await ports.kms.generate(tenantId, algorithm, provider);
  return certifyLeaf(ports.certificateAuthority, {
    ...wanted,
    key,
    root,
    ...leafValidity(now, days, root.notAfter),
  });
}

/** ISO/IEC 18013-5 table B.3: a document signer bears the country of its CA. */
function issuerNames(certificate: string): { readonly country?: string; readonly organization?: string } {
  const name = readCertificate(Buffer.from(certificate, 'base64'))?.subjectText ?? '';
  const [, country] = /(?:^|,)C=([A-Z]{2})(?:,|$)/.exec(name) ?? [];
  const [, organization] = /(?:^|,)O=((?:[^,\\]|\\.)+)(?:,|$)/.exec(name) ?? [];
  return {
    ...(country !== undefined && { country }),
    ...(organization !== undefined && { organization: organization.replaceAll(/\\(.)/g, '$1') }),
  };
}

export type LeafToCertify = Pick<NewKeyChain, 'tenantId' | 'usages' | 'subjectName' | 'dnsName'> &
  Validity & { readonly key: StoredKey; readonly root: KeyRoot };

/**
 * A leaf of the internal CA. A key that signs credentials gets a second certificate for mdocs: wallets and readers
 * of driving licences want one that is good for nothing else, so it cannot serve SD-JWT VCs and tokens, too.
 */
export async function certifyLeaf(authority: CertificateAuthority, leaf: LeafToCertify): Promise<KeyLeaf> {
  const { tenantId, usages, subjectName, dnsName, notBefore, notAfter, key, root } = leaf;
  const issue = (extendedKeyUsages?: readonly string[]) =>
    authority.issue(
      {
        kind: 'leaf',
        subject: { commonName: commonNames(subjectName).leaf, ...issuerNames(root.certificate) },
        publicJwk: key.publicJwk,
        dnsNames: [dnsName],
        notBefore,
        notAfter,
        ...(extendedKeyUsages !== undefined && { extendedKeyUsages }),
      },
      { key: signingKey(tenantId, root.key), certificate: root.certificate },
    );
  return {
    key,
    certificates: [await issue()],
    ...(usages.includes('signing') && { documentSigner: [await issue([MDL_DOCUMENT_SIGNER])] }),
    notAfter,
  };
}
