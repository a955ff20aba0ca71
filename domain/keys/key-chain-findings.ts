import { readCertificate } from '../formats/der/certificate.ts';
import type { Finding } from '../shared/finding.ts';
import { broughtCertificateFindings } from './brought-certificate-findings.ts';
import type { KeyChain, KeyUsage } from './key-chain.ts';

/** Where HAIP 1.0 speaks of the certificates of each usage. A trust list is trusted by its signer's own certificate. */
const RULES = [
  ['access', 'HAIP 1.0 section 5', 'wallets'],
  ['signing', 'HAIP 1.0 sections 4.1 and 6.1.1', 'wallets and verifiers'],
  ['statusList', 'HAIP 1.0 section 6.1', 'verifiers'],
] as const satisfies readonly (readonly [KeyUsage, string, string])[];

/** What readers refuse of the certificates that came from outside; those of an own authority are as they should be. */
export function keyChainFindings(chain: KeyChain): Finding[] {
  return chain.root === undefined ? [...anchorFindings(chain), ...broughtCertificateFindings(chain)] : [];
}

function anchorFindings({ usages, active }: KeyChain): Finding[] {
  const [leaf, ...others] = active.certificates.map(isSelfIssued);
  return RULES.filter(([usage]) => usages.includes(usage)).flatMap(([, rule, concerns]) => {
    const common = { rule, member: 'certificates', concerns, refusedBy: ['haip'] } as const;
    if (leaf === true) {
      const message = 'the certificate of the key is self-signed';
      return [{ ...common, message, change: 'use one that an authority issued' }];
    }
    if (others.includes(true)) {
      const message =
        'the chain contains its trust anchor, which is sent along with everything that the key signs';
      return [{ ...common, message, change: 'leave the root certificate out' }];
    }
    return [];
  });
}

function isSelfIssued(der: string): boolean {
  const certificate = readCertificate(Buffer.from(der, 'base64'));
  return certificate !== undefined && certificate.subject === certificate.issuer;
}
