import { parseCertificate } from '../formats/der/certificate.ts';
import { isSameName } from '../formats/der/name.ts';
import type { FieldError } from '../shared/failure.ts';
import { type Finding, includesProfile, type Profile } from '../shared/finding.ts';
import { findImportedCertificateProblems } from './imported-certificate-findings.ts';
import type { KeyChain, KeyUsage } from './key-chain.ts';
import { findSharedAuthorityProblems } from './key-chain-rights.ts';

/** Requirements of HAIP 1.0 on the certificates of each usage. A trust list is trusted by its signer's own certificate. */
const RULES = [
  ['access', 'HAIP 1.0 section 5', 'wallets'],
  ['signing', 'HAIP 1.0 sections 4.1 and 6.1.1', 'wallets and verifiers'],
  ['statusList', 'HAIP 1.0 section 6.1', 'verifiers'],
] as const satisfies readonly (readonly [KeyUsage, string, string])[];

/** Requirements of a profile that the tenant's key chains do not satisfy together. */
export function findMissingKeyProblems(chains: readonly KeyChain[], profile: Profile): FieldError[] {
  if (!includesProfile(profile, 'eu') || chains.some(({ usages }) => usages.includes('access'))) return [];
  const message = 'profile eu (ARF 3.0 ISSU_22 and ISSU_32): no key can sign the metadata of the issuer; create a key chain for access';
  return [{ path: 'key-chain', message }];
}

/** Warnings about a key and its certificates. @param profile of the tenant. */
export function findKeyChainProblems(chain: KeyChain, profile: Profile | null): Finding[] {
  return [
    ...findCertificateProblems(chain),
    ...findSharedAuthorityProblems(chain, []),
    ...(includesProfile(profile, 'eu') ? findAlgorithmProblems(chain) : []),
  ];
}

function findAlgorithmProblems({ active, root }: KeyChain): Finding[] {
  const keys = [active.key, ...(root === undefined ? [] : [root.key])];
  if (keys.every(({ handle }) => handle.algorithm !== 'EdDSA')) return [];
  return [
    {
      profileRule: 'ARF 3.0 OIA_03, ECCG Agreed Cryptographic Mechanisms 2',
      member: 'algorithm',
      concerns: 'the European Digital Identity Wallet and its relying parties',
      message: 'the key signs by EdDSA, which is not an agreed algorithm',
      change: 'create it for ES256, ES384 or ES512',
      refusedBy: ['eu'],
    },
  ];
}

/** Only imported certificates are checked; those of an internal CA are correct. */
function findCertificateProblems(chain: KeyChain): Finding[] {
  return chain.root === undefined ? [...findAnchorProblems(chain), ...findImportedCertificateProblems(chain)] : [];
}

function findAnchorProblems({ usages, active }: KeyChain): Finding[] {
  const [leaf, ...upperCertificates] = active.certificates.map(isSelfIssued);
  return RULES.filter(([usage]) => usages.includes(usage)).flatMap(([, profileRule, concerns]) => {
    const common = { profileRule, member: 'certificates', concerns, refusedBy: ['haip'] } as const;
    if (leaf === true) {
      const message = 'the certificate of the key is self-signed';
      return [{ ...common, message, change: 'use a certificate that an authority issued' }];
    }
    if (upperCertificates.includes(true)) {
      const message = 'the chain contains its trust anchor, which is sent with every signature of the key';
      return [{ ...common, message, change: 'remove the root certificate' }];
    }
    return [];
  });
}

function isSelfIssued(der: string): boolean {
  const certificate = parseCertificate(Buffer.from(der, 'base64'));
  return certificate !== undefined && isSameName(certificate.subject, certificate.issuer);
}
