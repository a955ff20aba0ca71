import { type Certificate, parseCertificate } from '../formats/der/certificate.ts';
import { parsePemCertificates } from '../formats/der/pem.ts';
import type { KeyChain, KeyUsage } from '../keys/key-chain.ts';
import { type FieldError, invalidFields } from '../shared/failure.ts';
import type { TrustListEntity } from './list-configuration.ts';

const MAX_CHAIN = 6;

/** Where the certificates of a service come from; `member` is how the entity calls it. */
export type CertificateSource = { readonly purpose: 'Issuance' | 'Revocation' } & (
  | { readonly member: 'issuerKeyChainId' | 'revocationKeyChainId'; readonly keyChainId: string }
  | { readonly member: 'issuerCertPem' | 'revocationCertPem'; readonly pem: string }
);

/** What a key chain has to be for. Status lists are signed by a chain of their own, or like their credentials. */
const USAGES = { issuerKeyChainId: ['signing'], revocationKeyChainId: ['statusList', 'signing'] } as const satisfies Record<
  string,
  readonly KeyUsage[]
>;

/** Of the service that issues, and of the one that revokes where the entity has one. */
export function sourcesOf(entity: TrustListEntity): readonly CertificateSource[] {
  const found: CertificateSource[] = [];
  if (entity.type === 'internal') {
    const { issuerKeyChainId, revocationKeyChainId: id } = entity;
    found.push({ purpose: 'Issuance', member: 'issuerKeyChainId', keyChainId: issuerKeyChainId });
    if (id !== undefined) found.push({ purpose: 'Revocation', member: 'revocationKeyChainId', keyChainId: id });
  } else {
    const { issuerCertPem, revocationCertPem: pem } = entity;
    found.push({ purpose: 'Issuance', member: 'issuerCertPem', pem: issuerCertPem });
    if (pem !== undefined) found.push({ purpose: 'Revocation', member: 'revocationCertPem', pem });
  }
  return found;
}

/** The key chains that entities name. */
export function keyChainIdsOf(entities: readonly TrustListEntity[]): readonly string[] {
  return entities.flatMap(sourcesOf).flatMap((source) => ('keyChainId' in source ? source.keyChainId : []));
}

/**
 * What relying parties are to anchor. The CA of a key chain outlives its leaves; a chain that came from outside has
 * none, so its leaf is listed. So is what was to be anchored before, because what that signed is still out there.
 * @returns DER in standard base64; undefined when the key chain is not there or the text holds no certificate.
 */
export function certificatesOf(source: CertificateSource, chains: readonly KeyChain[]): readonly string[] | undefined {
  if ('pem' in source) return parsePemCertificates(source.pem, MAX_CHAIN)?.slice(0, 1);
  const chain = chains.find(({ id }) => id === source.keyChainId);
  if (chain === undefined) return undefined;
  const leaves = [{ ...chain.active, root: chain.root?.certificate }, ...(chain.former ?? [])];
  // A compromised key is no anchor; the authority above it still is, and revokes its certificates.
  const anchors = leaves.map(({ root, certificates, revokedAt }) =>
    root === undefined && revokedAt !== undefined ? undefined : (root ?? certificates[0]),
  );
  return [...new Set(anchors)].filter((certificate) => certificate !== undefined);
}

/**
 * Looks at every certificate that entities bring or name.
 * @throws Failure `invalid_input` that names each that cannot be listed.
 */
export function assertListable(entities: readonly TrustListEntity[], chains: readonly KeyChain[], now: Date): void {
  const errors = entities.flatMap((entity, index) =>
    sourcesOf(entity).flatMap((source): FieldError[] => {
      const message = findSourceProblem(source, chains, now);
      return message === undefined ? [] : [{ path: `entities.${index}.${source.member}`, message }];
    }),
  );
  if (errors.length > 0) throw invalidFields(errors);
}

function findSourceProblem(source: CertificateSource, chains: readonly KeyChain[], now: Date): string | undefined {
  if ('pem' in source) return findPemProblem(source.pem, now);
  const chain = chains.find(({ id }) => id === source.keyChainId);
  if (chain === undefined) return `There is no key chain "${source.keyChainId}".`;
  const { notAfter } = chain.root ?? chain.active;
  if (notAfter <= now) return expired(notAfter);
  const usages = USAGES[source.member];
  if (usages.some((usage) => chain.usages.includes(usage))) return undefined;
  return `The key chain "${chain.id}" is not for the usage ${usages.join(' or ')}.`;
}

function findPemProblem(pem: string, now: Date): string | undefined {
  const certificates = (parsePemCertificates(pem, MAX_CHAIN) ?? []).map((text) => parseCertificate(Buffer.from(text, 'base64')));
  const [first] = certificates;
  if (first === undefined || certificates.includes(undefined)) return 'Give one PEM certificate, or a chain that begins with it.';
  if (first.notAfter <= now) return expired(first.notAfter);
  const isChain = certificates.every((certificate, index) => isIssued(certificate, certificates[index + 1]));
  return isChain ? undefined : 'Each certificate of a chain has to be issued by the one after it.';
}

function isIssued(certificate: Certificate | undefined, by: Certificate | undefined): boolean {
  if (certificate === undefined || by === undefined) return true;
  return certificate.x509.checkIssued(by.x509) && certificate.x509.verify(by.publicKey);
}

function expired(since: Date): string {
  return `The certificate expired at ${since.toISOString()}.`;
}
