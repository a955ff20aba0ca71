import { type Certificate, parseCertificate } from '../formats/der/certificate.ts';
import { parsePemCertificates } from '../formats/der/pem.ts';
import type { KeyChain, KeyUsage } from '../keys/key-chain.ts';
import { type FieldError, invalidFields } from '../shared/failure.ts';
import type { TrustListEntity } from './list-configuration.ts';

const MAX_CHAIN = 6;

/** Source of the certificates of a service; `member` is the property of the entity. */
export type CertificateSource = { readonly purpose: 'Issuance' | 'Revocation' } & (
  | { readonly member: 'issuerKeyChainId' | 'revocationKeyChainId'; readonly keyChainId: string }
  | { readonly member: 'issuerCertPem' | 'revocationCertPem'; readonly pem: string }
);

/** Accepted usages of a key chain. Status lists may be signed by a separate chain or by that of the credentials. */
const USAGES = { issuerKeyChainId: ['signing'], revocationKeyChainId: ['statusList', 'signing'] } as const satisfies Record<
  string,
  readonly KeyUsage[]
>;

/** Sources of the issuance service, and of the revocation service, if the entity has one. */
export function sourcesOf(entity: TrustListEntity): readonly CertificateSource[] {
  const sources: CertificateSource[] = [];
  if (entity.type === 'internal') {
    const { issuerKeyChainId, revocationKeyChainId: id } = entity;
    sources.push({ purpose: 'Issuance', member: 'issuerKeyChainId', keyChainId: issuerKeyChainId });
    if (id !== undefined) sources.push({ purpose: 'Revocation', member: 'revocationKeyChainId', keyChainId: id });
  } else {
    const { issuerCertPem, revocationCertPem: pem } = entity;
    sources.push({ purpose: 'Issuance', member: 'issuerCertPem', pem: issuerCertPem });
    if (pem !== undefined) sources.push({ purpose: 'Revocation', member: 'revocationCertPem', pem });
  }
  return sources;
}

/** Key chains that entities refer to. */
export function keyChainIdsOf(entities: readonly TrustListEntity[]): readonly string[] {
  return entities.flatMap(sourcesOf).flatMap((source) => ('keyChainId' in source ? source.keyChainId : []));
}

/**
 * The trust anchors of a service. The CA of a key chain outlives its leaves; an imported chain has no CA, so its leaf is listed. Previous
 * anchors are listed as well, because their signatures are still in use.
 * @returns DER in standard base64; undefined for a missing key chain or an invalid certificate.
 */
export function certificatesOf(source: CertificateSource, chains: readonly KeyChain[]): readonly string[] | undefined {
  if ('pem' in source) return parsePemCertificates(source.pem, MAX_CHAIN)?.slice(0, 1);
  const chain = chains.find(({ id }) => id === source.keyChainId);
  if (chain === undefined) return undefined;
  const leaves = [{ ...chain.active, root: chain.root?.certificate }, ...(chain.former ?? [])];
  // A compromised key is no anchor; its authority still is, and revokes the certificate.
  const anchors = leaves.map(({ root, certificates, revokedAt }) =>
    root === undefined && revokedAt !== undefined ? undefined : (root ?? certificates[0]),
  );
  return [...new Set(anchors)].filter((certificate) => certificate !== undefined);
}

/**
 * Validates all certificates of entities.
 * @throws Failure `invalid_input` with each certificate that cannot be listed.
 */
export function assertCertificatesValid(entities: readonly TrustListEntity[], chains: readonly KeyChain[], now: Date): void {
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
  const [leaf] = certificates;
  if (leaf === undefined || certificates.includes(undefined)) return 'Send one PEM certificate, or a chain that begins with it.';
  if (leaf.notAfter <= now) return expired(leaf.notAfter);
  const isChain = certificates.every((certificate, index) => isIssued(certificate, certificates[index + 1]));
  return isChain ? undefined : 'Each certificate of a chain must be issued by the next one.';
}

function isIssued(certificate: Certificate | undefined, issuer: Certificate | undefined): boolean {
  if (certificate === undefined || issuer === undefined) return true;
  return certificate.x509.checkIssued(issuer.x509) && certificate.x509.verify(issuer.publicKey);
}

function expired(expiredAt: Date): string {
  return `The certificate expired at ${expiredAt.toISOString()}.`;
}
