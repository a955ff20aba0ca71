import { KEY_USAGE, keyIdentifierOf, parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { Failure, type FieldError, invalidFields, invalidInput } from '../../domain/shared/failure.ts';
import { ownTrustListOf } from '../../domain/trust-lists/own-address.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import type { TrustAnchorConfig } from '../../domain/verification/trust-anchor.ts';
import type { Certificates } from '../ports/certificates.ts';
import { accessChainOf } from '../registrar/certificate-subject.ts';
import { accessIdentity, sanDnsClientId } from './access-chain.ts';

/** What a tenant's references are looked up in. */
type Known = { readonly chains: readonly KeyChain[]; readonly certificates: Certificates; readonly publicUrl: string; readonly now: Date };

/**
 * Looks up what a presentation configuration refers to.
 * @param isWritten whether a property is new or was changed; references of others are kept as they are.
 * @throws Failure `invalid_input` that names each reference that leads nowhere.
 */
export function assertReferences(
  { accessKeyChainId, furtherAccessKeyChainIds, clientIdPrefix, trustAnchors }: PresentationConfigurationBody,
  { chains, certificates, publicUrl, now }: Known,
  isWritten: (property: string) => boolean,
): void {
  if (['accessKeyChainId', 'furtherAccessKeyChainIds', 'clientIdPrefix'].some(isWritten))
    assertSigners({ accessKeyChainId, furtherAccessKeyChainIds, clientIdPrefix }, { chains, publicUrl, now });
  // Lists that the query names become anchors.
  if (!['trustAnchors', 'dcql_query'].some(isWritten)) return;
  // Lists often have the same signers, and reading a certificate takes milliseconds.
  const readable = new Set<string>();
  const errors = trustAnchors.flatMap((anchor, index): FieldError[] => {
    const path = `trustAnchors.${index}`;
    if ('ownAuthorities' in anchor) return [];
    if ('trustList' in anchor) return findTrustListProblems(anchor, publicUrl, path, readable);
    if (!isWritten('trustAnchors')) return [];
    const fault =
      'certificate' in anchor
        ? findAnchorProblem(anchor, `${path}.certificate`, certificates, now)
        : findKeyChainProblem(anchor.keyChainId, chains, path);
    return fault === undefined ? [] : [fault];
  });
  if (errors.length > 0) throw invalidFields(errors);
  const alike = isWritten('trustAnchors') ? findKeyIdentifierProblems(trustAnchors, chains) : [];
  if (alike.length > 0) throw invalidFields(alike);
}

function assertSigners(
  {
    accessKeyChainId,
    furtherAccessKeyChainIds,
    clientIdPrefix,
  }: Pick<PresentationConfigurationBody, 'accessKeyChainId' | 'furtherAccessKeyChainIds' | 'clientIdPrefix'>,
  { chains, publicUrl, now }: Pick<Known, 'chains' | 'publicUrl' | 'now'>,
): void {
  // Without a wish the default counts, and that may still be made before the first request.
  const named = typeof accessKeyChainId === 'string' ? accessIdentity(chains, now, accessKeyChainId) : undefined;
  if (named !== undefined && clientIdPrefix === 'x509_san_dns') sanDnsClientId(named.chain, new URL(publicUrl).hostname);
  const first = firstSigner(chains, now, accessKeyChainId);
  for (const [index, id] of (furtherAccessKeyChainIds ?? []).entries()) {
    const path = `furtherAccessKeyChainIds.${index}`;
    assertFurtherSigner(chains, now, id, path);
    if (id === first) throw invalidInput(path, `The key chain "${id}" signs already, as accessKeyChainId.`);
  }
}

/** The key chain that signs where nothing else is said, or as is said; undefined as long as there is none. */
function firstSigner(chains: readonly KeyChain[], now: Date, wanted: string | null | undefined) {
  return accessChainOf(chains, now, wanted)?.id;
}

function assertFurtherSigner(chains: readonly KeyChain[], now: Date, id: string, path: string): void {
  try {
    accessIdentity(chains, now, id);
  } catch (error) {
    throw error instanceof Failure ? invalidInput(path, error.details.errors?.[0]?.message ?? error.message) : error;
  }
}

/**
 * Queries name authorities by the identifier of their key (OpenID4VP 1.0 section 6.1.1, `aki`), which the one who makes
 * a certificate chooses: of two keys with one identifier, each would stand for the other.
 */
function findKeyIdentifierProblems(anchors: readonly TrustAnchorConfig[], chains: readonly KeyChain[]): readonly FieldError[] {
  const known = new Map<string, { readonly keyHash: string; readonly path: string }>();
  return anchors.flatMap((anchor, index): FieldError[] => {
    const certificate = anchoredCertificate(anchor, chains);
    if (certificate === undefined) return [];
    const path = `trustAnchors.${index}`;
    const keyId = keyIdentifierOf(certificate);
    const other = known.get(keyId);
    if (other === undefined) known.set(keyId, { keyHash: certificate.keyHash, path });
    if (other === undefined || other.keyHash === certificate.keyHash) return [];
    const message = `The certificate has the key identifier of another key, ${other.path}. Only one of them can be trusted.`;
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

/** A list that nobody signs for must not be used; for our own we know who does. */
function findTrustListProblems({ trustList, signedBy }: ListAnchor, publicUrl: string, path: string, readable: Set<string>): FieldError[] {
  if (signedBy === undefined && ownTrustListOf(trustList, publicUrl) === undefined) {
    const message = 'Give the certificates under which this list is signed.';
    return [{ path: `${path}.signedBy`, message }];
  }
  return (signedBy ?? []).flatMap((pem, index) => {
    if (readable.has(pem)) return [];
    const fault = findCertificateProblem(pem, `${path}.signedBy.${index}`);
    if (fault === undefined) readable.add(pem);
    return fault ?? [];
  });
}

function findCertificateProblem(pem: string, path: string): FieldError | undefined {
  const [certificate] = parsePemCertificates(pem, 1) ?? [];
  const isReadable = certificate !== undefined && parseCertificate(Buffer.from(certificate, 'base64')) !== undefined;
  return isReadable ? undefined : { path, message: 'Give exactly one PEM certificate; an RSA key has 2048 to 4096 bits.' };
}

/** What could vouch for no credential, now or ever, is a mistake, and every presentation would be refused for it. */
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
  const refuse = (why: string) => ({ path, message: `The certificate can vouch for no credential: ${why}.` });
  if (certificate.notAfter <= now) return refuse('it has ended');
  if (certificate.basicConstraints?.ca === true && !pin) {
    const { keyUsage } = certificate;
    return keyUsage === undefined || keyUsage.has(KEY_USAGE.keyCertSign)
      ? undefined
      : refuse('it is of a CA that may not sign certificates');
  }
  // One that counts later is trusted from then on.
  const then = certificate.notBefore > now ? certificate.notBefore : now;
  const verdicts = (['SD-JWT VC', 'mdoc'] as const).map((purpose) =>
    certificates.verifyChain([base64], [{ certificate: base64, pin }], then, { purpose }),
  );
  const [first] = verdicts;
  return verdicts.some(({ trusted }) => trusted) || first === undefined || first.trusted ? undefined : refuse(first.detail);
}

function findKeyChainProblem(id: string, chains: readonly KeyChain[], path: string): FieldError | undefined {
  const chain = chains.find((candidate) => candidate.id === id);
  if (chain?.root !== undefined && chain.usages.includes('signing')) return undefined;
  const message =
    chain === undefined
      ? `There is no key chain "${id}".`
      : chain.root === undefined
        ? `The key chain "${id}" came from outside and has no CA of its own. Give its CA as a certificate.`
        : `The key chain "${id}" signs no credentials, so nobody could be trusted by it.`;
  return { path: `${path}.keyChainId`, message };
}
