import { type Certificate, readCertificate } from '../formats/der/certificate.ts';
import { readPemCertificates } from '../formats/der/pem.ts';
import type { KeyChain, KeyUsage } from '../keys/key-chain.ts';
import { Failure, type FieldError } from '../shared/failure.ts';
import type { TrustListEntity } from './list-configuration.ts';

const MAX_CHAIN = 6;

/** Where the certificates of a service come from; `member` is how the entity calls it. */
export type CertificateSource =
  | { readonly member: 'issuerKeyChainId' | 'revocationKeyChainId'; readonly keyChainId: string }
  | { readonly member: 'issuerCertPem' | 'revocationCertPem'; readonly pem: string };

/** What a key chain has to be for. Status lists are signed by a chain of their own, or like their credentials. */
const USAGES = {
  issuerKeyChainId: ['signing'],
  revocationKeyChainId: ['statusList', 'signing'],
} as const satisfies Record<string, readonly KeyUsage[]>;

export type EntitySources = {
  readonly issuance: CertificateSource;
  readonly revocation: CertificateSource | undefined;
};

export function sourcesOf(entity: TrustListEntity): EntitySources {
  if (entity.type === 'internal') {
    const { issuerKeyChainId, revocationKeyChainId } = entity;
    return {
      issuance: { member: 'issuerKeyChainId', keyChainId: issuerKeyChainId },
      revocation:
        revocationKeyChainId === undefined
          ? undefined
          : { member: 'revocationKeyChainId', keyChainId: revocationKeyChainId },
    };
  }
  const { issuerCertPem, revocationCertPem } = entity;
  return {
    issuance: { member: 'issuerCertPem', pem: issuerCertPem },
    revocation:
      revocationCertPem === undefined ? undefined : { member: 'revocationCertPem', pem: revocationCertPem },
  };
}

/** The key chains that entities name. */
export function keyChainIdsOf(entities: readonly TrustListEntity[]): readonly string[] {
  return entities.flatMap((entity) => {
    const { issuance, revocation } = sourcesOf(entity);
    return [issuance, revocation].flatMap((source) =>
      source !== undefined && 'keyChainId' in source ? [source.keyChainId] : [],
    );
  });
}

/**
 * What relying parties are to anchor. The CA of a key chain outlives its leaves; a chain that came from outside has
 * none, so its leaf is listed. So is what was to be anchored before, because what that signed is still out there.
 * @returns DER in standard base64; undefined when the key chain is not there or the text holds no certificate.
 */
export function certificatesOf(
  source: CertificateSource,
  chains: readonly KeyChain[],
): readonly string[] | undefined {
  if ('pem' in source) return readPemCertificates(source.pem, MAX_CHAIN)?.slice(0, 1);
  const chain = chains.find(({ id }) => id === source.keyChainId);
  if (chain === undefined) return undefined;
  const present = chain.root?.certificate ?? chain.active.certificates[0];
  const former = (chain.former ?? []).map(({ root, certificates }) => root ?? certificates[0]);
  return [...new Set([present, ...former])].filter((certificate) => certificate !== undefined);
}

/**
 * Looks at every certificate that entities bring or name.
 * @throws Failure `invalid_input` that names each that cannot be listed.
 */
export function assertListable(
  entities: readonly TrustListEntity[],
  chains: readonly KeyChain[],
  now: Date,
): void {
  const errors = entities.flatMap((entity, index): FieldError[] => {
    const { issuance, revocation } = sourcesOf(entity);
    return [issuance, revocation].flatMap((source) => {
      const message = source === undefined ? undefined : faultOf(source, chains, now);
      return source === undefined || message === undefined
        ? []
        : [{ path: `entities.${index}.${source.member}`, message }];
    });
  });
  const [first] = errors;
  if (first === undefined) return;
  throw new Failure('invalid_input', { message: `${first.path}: ${first.message}`, errors });
}

function faultOf(source: CertificateSource, chains: readonly KeyChain[], now: Date): string | undefined {
  if ('pem' in source) return pemFault(source.pem, now);
  const chain = chains.find(({ id }) => id === source.keyChainId);
  if (chain === undefined) return `There is no key chain "${source.keyChainId}".`;
  const { notAfter } = chain.root ?? chain.active;
  if (notAfter <= now) return expired(notAfter);
  const usages = USAGES[source.member];
  if (usages.some((usage) => chain.usages.includes(usage))) return undefined;
  return `The key chain "${chain.id}" is not for the usage ${usages.join(' or ')}.`;
}

function pemFault(pem: string, now: Date): string | undefined {
  const certificates = (readPemCertificates(pem, MAX_CHAIN) ?? []).map((text) =>
    readCertificate(Buffer.from(text, 'base64')),
  );
  const [first] = certificates;
  if (first === undefined || certificates.includes(undefined)) {
    return 'Give one PEM certificate, or a chain that begins with it.';
  }
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
