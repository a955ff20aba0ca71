import { hash } from 'node:crypto';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { parsePemCertificates } from '../../domain/formats/der/pem.ts';
import { allowsPurpose } from '../../domain/keys/certificate-purpose.ts';
import { algorithmOf, type PublicJwk } from '../../domain/shared/jwk.ts';
import { contentHashOf } from '../../domain/trust-lists/freshness.ts';
import { parseTrustList, type TrustList } from '../../domain/trust-lists/lote.ts';
import { assertSigningTime, parseSignedList, type SignedList } from '../../domain/trust-lists/signed-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { Certificates, TrustAnchor } from '../ports/certificates.ts';
import type { Signatures } from '../ports/signatures.ts';

/** Pinned certificates of CAs or signers of a list. */
export type PinnedSigners = {
  readonly anchors: readonly TrustAnchor[];
  /** Hash of the certificates: equal for the same certificates in the same order. */
  readonly id: string;
};

const MAX_CERTIFICATES_PER_TEXT = 10;

/** @param pems texts with PEM certificates; a text without a certificate is ignored. */
export function pinSigners(pems: readonly string[]): PinnedSigners {
  return signersOf(pems.flatMap((pem) => parsePemCertificates(pem, MAX_CERTIFICATES_PER_TEXT) ?? []));
}

/** @param certificates DER in standard base64. */
export function signersOf(certificates: readonly string[]): PinnedSigners {
  return { anchors: certificates.map((certificate) => ({ certificate })), id: hash('sha256', certificates.join('|'), 'base64url') };
}

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates };

export type VerifiedList = {
  readonly list: TrustList;
  /** Hashes of the document, and of its content without dates; SHA-256, base64url. */
  readonly documentHash: string;
  readonly contentHash: string;
};

/**
 * Verifies a list in the form of a compact JWS. Its content is parsed only after its signature was verified.
 * @throws TrustListRefusal also `untrusted_signer` for a list that was not signed under a pinned certificate.
 */
export function verifyTrustList(ports: Ports, text: string, anchors: readonly TrustAnchor[], now: Date): VerifiedList {
  const signedList = parseSignedList(text);
  const key = signerKey(ports.certificates, signedList.signer, anchors, now);
  // RFC 8725 section 3.1: the algorithm follows from the key.
  if (algorithmOf(key) !== signedList.algorithm) throw new TrustListRefusal('algorithm', 'the algorithm is not that of the key');
  const { jws, documentHash } = signedList;
  if (!ports.signatures.verify(key, jws.signingInput, jws.signature)) throw new TrustListRefusal('signature');
  assertSigningTime(signedList, now);
  return { list: parseTrustList(jws.payload, now), documentHash, contentHash: contentHashOf(jws.payload) };
}

function signerKey(certificates: Certificates, signer: SignedList['signer'], anchors: readonly TrustAnchor[], now: Date): PublicJwk {
  if ('thumbprint' in signer) {
    const pinned = anchors.find(({ certificate }) => thumbprintOf(certificate) === signer.thumbprint);
    if (pinned === undefined) throw new TrustListRefusal('untrusted_signer', 'x5t#S256 is not that of a pinned certificate');
    return pinnedKey(pinned.certificate, now);
  }
  const { chain } = signer;
  const [leaf = ''] = chain;
  // TS 119 602 section 6.8: a self-signed signer may have CA:TRUE; a pinned certificate is accepted regardless
  if (anchors.some(({ certificate }) => certificate === leaf)) return pinnedKey(leaf, now);
  const verdict = certificates.verifyChain(chain, anchors, now, { purpose: 'trust list' });
  if (!verdict.trusted) throw new TrustListRefusal('untrusted_signer', verdict.detail);
  return verdict.key;
}

export function thumbprintOf(certificate: string): string {
  return hash('sha256', Buffer.from(certificate, 'base64'), 'base64url');
}

function pinnedKey(base64: string, now: Date): PublicJwk {
  const certificate = parseCertificate(Buffer.from(base64, 'base64'));
  if (certificate?.publicJwk === undefined)
    throw new TrustListRefusal('untrusted_signer', 'the key of the pinned certificate is not supported');
  // RFC 5280 section 6.1.3 (a)(2)
  if (now < certificate.notBefore || now > certificate.notAfter) {
    throw new TrustListRefusal('untrusted_signer', 'the pinned certificate is not valid now');
  }
  // RFC 5280 section 4.2.1.12
  if (!allowsPurpose(certificate, 'trust list')) {
    throw new TrustListRefusal('untrusted_signer', 'the extended key usage of the pinned certificate does not permit trust lists');
  }
  return certificate.publicJwk;
}
