import { KEY_USAGE, keyIdentifierOf, parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { Failure, type FieldError, invalidFields, invalidInput } from '../../domain/shared/failure.ts';
import { parseInternalTrustListAddress } from '../../domain/trust-lists/internal-address.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import type { TrustAnchorConfig } from '../../domain/verification/trust-anchor.ts';
import type { Certificates } from '../ports/certificates.ts';
import { accessChainOf } from '../registrar/certificate-subject.ts';
import { accessIdentity, sanDnsClientId } from './access-chain.ts';

type ReferenceContext = {
  readonly chains: readonly KeyChain[];
  readonly certificates: Certificates;
  readonly publicUrl: string;
  readonly now: Date;
};

/**
 * Checks the references of a presentation configuration.
 * @param isWritten true for a property that is new or changed; other references are not checked again.
 * @throws Failure `invalid_input` with each reference that cannot be resolved.
 */
export function assertReferences(
  { accessKeyChainId, furtherAccessKeyChainIds, clientIdPrefix, trustAnchors }: PresentationConfigurationBody,
  { chains, certificates, publicUrl, now }: ReferenceContext,
  isWritten: (property: string) => boolean,
): void {
  if (['accessKeyChainId', 'furtherAccessKeyChainIds', 'clientIdPrefix'].some(isWritten))
    assertSigners({ accessKeyChainId, furtherAccessKeyChainIds, clientIdPrefix }, { chains, publicUrl, now });
  // Trust lists in `trusted_authorities` (`etsi_tl`) of the query are added to `trustAnchors`.
  if (!['trustAnchors', 'dcql_query'].some(isWritten)) return;
  // Lists often have the same signers, and parsing a certificate takes milliseconds.
  const parsedPems = new Set<string>();
  const errors = trustAnchors.flatMap((anchor, index): FieldError[] => {
    const path = `trustAnchors.${index}`;
    if ('ownAuthorities' in anchor) return [];
    if ('trustList' in anchor) return findTrustListProblems(anchor, publicUrl, path, parsedPems);
    if (!isWritten('trustAnchors')) return [];
    const fault =
      'certificate' in anchor
        ? findAnchorProblem(anchor, `${path}.certificate`, certificates, now)
        : findKeyChainProblem(anchor.keyChainId, chains, path);
    return fault === undefined ? [] : [fault];
  });
  if (errors.length > 0) throw invalidFields(errors);
  const duplicateIdentifiers = isWritten('trustAnchors') ? findKeyIdentifierProblems(trustAnchors, chains) : [];
  if (duplicateIdentifiers.length > 0) throw invalidFields(duplicateIdentifiers);
}

function assertSigners(
  {
    accessKeyChainId,
    furtherAccessKeyChainIds,
    clientIdPrefix,
  }: Pick<PresentationConfigurationBody, 'accessKeyChainId' | 'furtherAccessKeyChainIds' | 'clientIdPrefix'>,
  { chains, publicUrl, now }: Pick<ReferenceContext, 'chains' | 'publicUrl' | 'now'>,
): void {
  // The default signer may be created later, before the first request.
  const namedSigner = typeof accessKeyChainId === 'string' ? accessIdentity(chains, now, accessKeyChainId) : undefined;
  if (namedSigner !== undefined && clientIdPrefix === 'x509_san_dns') sanDnsClientId(namedSigner.chain, new URL(publicUrl).hostname);
  const defaultSigner = firstSigner(chains, now, accessKeyChainId);
  for (const [index, id] of (furtherAccessKeyChainIds ?? []).entries()) {
    const path = `furtherAccessKeyChainIds.${index}`;
    assertFurtherSigner(chains, now, id, path);
    if (id === defaultSigner) throw invalidInput(path, `The key chain "${id}" already signs as accessKeyChainId.`);
  }
}

/** The key chain that signs by default or as requested; undefined while there is none. */
function firstSigner(chains: readonly KeyChain[], now: Date, requestedId: string | null | undefined) {
  return accessChainOf(chains, now, requestedId)?.id;
}

function assertFurtherSigner(chains: readonly KeyChain[], now: Date, id: string, path: string): void {
  try {
    accessIdentity(chains, now, id);
  } catch (error) {
    throw error instanceof Failure ? invalidInput(path, error.details.errors?.[0]?.message ?? error.message) : error;
  }
}

/**
 * Queries refer to authorities by key identifier (OpenID4VP 1.0 section 6.1.1, `aki`), which the creator of a certificate chooses:
 * two keys with the same identifier could be mistaken for each other.
 */
function findKeyIdentifierProblems(anchors: readonly TrustAnchorConfig[], chains: readonly KeyChain[]): readonly FieldError[] {
  const pathsByKeyId = new Map<string, { readonly keyHash: string; readonly path: string }>();
  return anchors.flatMap((anchor, index): FieldError[] => {
    const certificate = anchoredCertificate(anchor, chains);
    if (certificate === undefined) return [];
    const path = `trustAnchors.${index}`;
    const keyId = keyIdentifierOf(certificate);
    const previous = pathsByKeyId.get(keyId);
    if (previous === undefined) pathsByKeyId.set(keyId, { keyHash: certificate.keyHash, path });
    if (previous === undefined || previous.keyHash === certificate.keyHash) return [];
    const message = `The certificate has the same key identifier as ${previous.path}, but another key. Remove one of them.`;
    return [{ path, message }];
  });
}

function anchoredCertificate(anchor: TrustAnchorConfig, chains: readonly KeyChain[]) {
  if ('trustList' in anchor || 'ownAuthorities' in anchor) return undefined;
  const base64 =
    'certificate' in anchor
      ? parsePemCertificates(anchor.certificate, 1)?.[0]
      : chains.find(({ id }) => id === anchor.keyChainId)?.root?.certificate;
  return base64 === undefined ? undefined : parseCertificate(Buffer.from(base64, 'base64'));
}

type ListAnchor = Extract<TrustAnchorConfig, { trustList: string }>;

/** A third-party list without configured signers must not be used; the signers of a list of this service are known. */
function findTrustListProblems(
  { trustList, signedBy }: ListAnchor,
  publicUrl: string,
  path: string,
  parsedPems: Set<string>,
): FieldError[] {
  if (signedBy === undefined && parseInternalTrustListAddress(trustList, publicUrl) === undefined) {
    const message = 'Set the certificates of the signers of this list.';
    return [{ path: `${path}.signedBy`, message }];
  }
  return (signedBy ?? []).flatMap((pem, index) => {
    if (parsedPems.has(pem)) return [];
    const fault = findCertificateProblem(pem, `${path}.signedBy.${index}`);
    if (fault === undefined) parsedPems.add(pem);
    return fault ?? [];
  });
}

function findCertificateProblem(pem: string, path: string): FieldError | undefined {
  const [certificate] = parsePemCertificates(pem, 1) ?? [];
  const isReadable = certificate !== undefined && parseCertificate(Buffer.from(certificate, 'base64')) !== undefined;
  return isReadable ? undefined : { path, message: 'Set exactly one PEM certificate; an RSA key has 2048 to 4096 bits.' };
}

/** An anchor that can never vouch for a credential is a mistake that would cause the rejection of every presentation. */
function findAnchorProblem(
  { certificate: pem, pin = false }: Extract<TrustAnchorConfig, { certificate: string }>,
  path: string,
  certificates: Certificates,
  now: Date,
): FieldError | undefined {
  const unreadable = findCertificateProblem(pem, path);
  const [base64 = ''] = parsePemCertificates(pem, 1) ?? [];
  const certificate = parseCertificate(Buffer.from(base64, 'base64'));
  if (unreadable !== undefined || certificate === undefined) return unreadable;
  const refuse = (reason: string) => ({ path, message: `The certificate cannot be a trust anchor: ${reason}.` });
  if (certificate.notAfter <= now) return refuse('it has expired');
  if (certificate.basicConstraints?.ca === true && !pin) {
    const { keyUsage } = certificate;
    return keyUsage === undefined || keyUsage.has(KEY_USAGE.keyCertSign)
      ? undefined
      : refuse('it is of a CA that may not sign certificates');
  }
  // A certificate that is not valid yet is checked at the start of its validity.
  const validFrom = certificate.notBefore > now ? certificate.notBefore : now;
  const verdicts = (['SD-JWT VC', 'mdoc'] as const).map((purpose) =>
    certificates.verifyChain([base64], [{ certificate: base64, pin }], validFrom, { purpose }),
  );
  const [firstVerdict] = verdicts;
  return verdicts.some(({ trusted }) => trusted) || firstVerdict === undefined || firstVerdict.trusted
    ? undefined
    : refuse(firstVerdict.detail);
}

function findKeyChainProblem(id: string, chains: readonly KeyChain[], path: string): FieldError | undefined {
  const chain = chains.find((candidate) => candidate.id === id);
  if (chain?.root !== undefined && chain.usages.includes('signing')) return undefined;
  const message =
    chain === undefined
      ? `There is no key chain "${id}".`
      : chain.root === undefined
        ? `The key chain "${id}" has certificates of an external authority and no internal CA. Set its CA as a certificate.`
        : `The key chain "${id}" signs no credentials, so it cannot be a trust anchor.`;
  return { path: `${path}.keyChainId`, message };
}
