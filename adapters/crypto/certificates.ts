import { constants, hash, type KeyObject, verify } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  Certificates,
  type ChainProfile,
  type ChainVerdict,
  type IssuerSigned,
  type TrustAnchor,
} from '../../application/ports/certificates.ts';
import { shareOfCacheMemory } from '../../application/tenant-cache/cache-memory.ts';
import type { Certificate } from '../../domain/formats/der/certificate.ts';
import { normalizeName } from '../../domain/formats/der/name.ts';
import type { PssParameters } from '../../domain/formats/der/signature-algorithm.ts';
import type { CertificatePurpose } from '../../domain/keys/certificate-purpose.ts';
import { type AnchorIndex, indexAnchors, parse } from './anchor-index.ts';
import {
  findLeafProblem,
  findRightsProblem,
  findValidityProblem,
  isOfEdwards,
  isSelfIssued,
  isSigned,
  namesIssuer,
} from './certificate-path.ts';

type TrustedVerdict = Extract<ChainVerdict, { trusted: true }>;
type RejectedVerdict = Extract<ChainVerdict, { trusted: false }>;
/** Verdict that is valid while the time is between both instants (milliseconds). */
type CachedVerdict = { readonly verdict: ChainVerdict; readonly from: number; readonly until: number };
type Search = { readonly path: readonly Certificate[]; readonly verdict: TrustedVerdict } | RejectedVerdict;

const MAX_CHAIN = 6;
/** Characters of all cached certificates; parsed certificates take several times as much. */
const MAX_KEPT_LENGTH = 8 * 1024 * 1024;
/** Fixed cost of a parsed certificate, in the same unit. */
const CERTIFICATE_OVERHEAD = 2_048;
/** Characters of the texts of all verdicts; accepted and rejected paths have a cache each, so that neither evicts the other. */
const MAX_VERDICTS_LENGTH = 4 * 1024 * 1024;
/** Fixed cost of a verdict, in the same unit. */
const VERDICT_OVERHEAD = 1_024;
/** Rejections are cached for as long as a wallet or an attacker may retry at once. */
const REFUSAL_MS = 10_000;
/** Anchors of one name that are tried per chain; there is more than one only while a CA changes its key. */
const MAX_TRIED = 32;

/**
 * Validates paths with node:crypto. Certificates and verdicts are cached: a verdict depends only on the certificates, the anchors, the
 * purpose and the time, and the time is checked on each call.
 */
export class NodeCertificates extends Certificates {
  /** Anonymous callers send certificates, too, so the cache is bounded by its size. */
  readonly #certificates = new LRUCache<string, Certificate>({
    maxSize: shareOfCacheMemory(MAX_KEPT_LENGTH),
    sizeCalculation: (_certificate, base64) => base64.length + CERTIFICATE_OVERHEAD,
  });
  readonly #verdicts = verdicts();
  readonly #refusals = verdicts();
  /** Indexes by the list of anchors itself: callers keep long lists and pass them repeatedly. */
  readonly #indexes = new WeakMap<readonly TrustAnchor[], AnchorIndex>();

  override verifyChain(
    chain: readonly string[],
    anchors: readonly TrustAnchor[],
    now: Date,
    { purpose, haip = false, agreedOnly = false }: ChainProfile,
  ): ChainVerdict {
    const index = this.#indexOf(anchors);
    const key = hash('sha256', `${purpose}|${haip}|${agreedOnly}|${index.id}|${chain.join('|')}`, 'base64url');
    const time = now.getTime();
    const cached = this.#verdicts.get(key) ?? this.#refusals.get(key);
    if (cached !== undefined && time >= cached.from && time <= cached.until) return cached.verdict;

    const certificates = this.#readChain(chain);
    const result = Array.isArray(certificates)
      ? requireAgreedAlgorithms(this.#search(certificates, index, now, { purpose, haip }), agreedOnly)
      : (certificates as RejectedVerdict);
    if ('trusted' in result) {
      // Time alone may fix it, and clocks may differ by a minute.
      if (result.reason !== 'certificate_expired') this.#refusals.set(key, { verdict: result, from: time, until: time + REFUSAL_MS });
      return result;
    }
    this.#verdicts.set(key, {
      verdict: result.verdict,
      from: Math.max(...result.path.map((certificate) => certificate.notBefore.getTime())),
      until: Math.min(...result.path.map((certificate) => certificate.notAfter.getTime())),
    });
    return result.verdict;
  }

  override isResponder(responder: string, issuer: string, now: Date): boolean {
    const [leaf, authority] = [this.#read(responder), this.#read(issuer)];
    if (leaf === undefined || authority === undefined || !namesIssuer(leaf, authority)) return false;
    const path = [leaf, authority];
    return isSigned(path) && findRightsProblem(path, 'OCSP answer') === undefined && findExpiryProblem(path, now) === undefined;
  }

  override hasSigned(issuer: string, signed: IssuerSigned): boolean {
    const certificate = this.#read(issuer);
    return certificate !== undefined && isIssuerSigned(certificate, signed);
  }

  #indexOf(anchors: readonly TrustAnchor[]): AnchorIndex {
    let index = this.#indexes.get(anchors);
    if (index === undefined) {
      index = indexAnchors(anchors);
      this.#indexes.set(anchors, index);
    }
    return index;
  }

  #read(base64: string): Certificate | undefined {
    let certificate = this.#certificates.get(base64);
    if (certificate === undefined) {
      certificate = parse(base64);
      if (certificate !== undefined) this.#certificates.set(base64, certificate);
    }
    return certificate;
  }

  #readChain(chain: readonly string[]): Certificate[] | RejectedVerdict {
    if (chain.length === 0 || chain.length > MAX_CHAIN) return rejected('issuer_key_unresolved', 'chain length');
    const certificates: Certificate[] = [];
    for (const text of chain) {
      const certificate = this.#read(text);
      if (certificate === undefined) return rejected('issuer_key_unresolved', 'not a certificate');
      certificates.push(certificate);
    }
    const hashes = new Set(certificates.map((certificate) => certificate.hash));
    return hashes.size === certificates.length ? certificates : rejected('untrusted_chain', 'a certificate is listed twice');
  }

  #search(chain: readonly Certificate[], index: AnchorIndex, now: Date, { purpose, haip }: ChainProfile): Search {
    const [leaf] = chain;
    if (leaf === undefined) return rejected('issuer_key_unresolved', 'no certificate');
    // HAIP 1.0 section 6.1.1
    if (haip === true && isSelfIssued(leaf)) return rejected('certificate_profile', 'the leaf is self-signed');
    const inside = chain.some((certificate) => index.authorities.has(certificate.hash));
    // HAIP 1.0 section 6.1.1
    if (haip === true && inside) return rejected('x5c_contains_anchor', 'the chain contains its anchor');

    if (index.unconditional.has(leaf.hash)) {
      const fault = findValidityProblem(leaf, now);
      if (fault !== undefined) return rejected(fault.reason, fault.detail);
      const result = acceptedPath([leaf], leaf);
      return 'trusted' in result ? result : { ...result, verdict: { ...result.verdict, isPin: true } };
    }
    if (index.pins.has(leaf.hash)) {
      const fault = findValidityProblem(leaf, now) ?? findLeafProblem(leaf, purpose);
      return fault === undefined ? acceptedPath([leaf], leaf) : rejected(fault.reason, fault.detail);
    }
    const authoritiesOf = (issuer: string) =>
      (index.bySubject.get(normalizeName(issuer)) ?? []).flatMap((base64) => this.#read(base64) ?? []);
    return searchPath(chain, authoritiesOf, now, purpose);
  }
}

function verdicts() {
  return new LRUCache<string, CachedVerdict>({
    maxSize: shareOfCacheMemory(MAX_VERDICTS_LENGTH),
    sizeCalculation: ({ verdict }, key) => key.length + textOf(verdict).length + VERDICT_OVERHEAD,
  });
}

function textOf(verdict: ChainVerdict): string {
  return verdict.trusted ? verdict.subject + verdict.anchorCertificate + verdict.names.join() : verdict.detail;
}

/**
 * Follows the names upwards until a certificate names an anchor as its issuer. No signature is verified before, so certificates of
 * attackers cost no more than their parsing, whatever their keys.
 */
function searchPath(
  chain: readonly Certificate[],
  authoritiesOf: (issuer: string) => readonly Certificate[],
  now: Date,
  purpose: CertificatePurpose,
): Search {
  let failure = rejected('untrusted_chain', 'no path to a trust anchor');
  let tried = 0;
  for (const [position, certificate] of chain.entries()) {
    const issuer = chain[position + 1];
    // RFC 5280 section 6.1.3 (a)(4): the subject of the issuer is the issuer name of the certificate.
    for (const anchor of authoritiesOf(certificate.issuer)) {
      // A leaf that is itself an anchor has no path: the anchor must be another certificate.
      if (anchor.hash === chain[0]?.hash || !namesIssuer(certificate, anchor)) continue;
      if (tried++ === MAX_TRIED) return failure;
      const path = [...chain.slice(0, position + 1), anchor];
      if (!isSigned(path)) continue;
      const fault = findRightsProblem(path, purpose) ?? findExpiryProblem(path, now);
      if (fault === undefined) return acceptedPath(path, anchor);
      failure = rejected(fault.reason, fault.detail);
    }
    // RFC 7515 section 4.1.6: each certificate certifies the one before it.
    if (issuer === undefined || !namesIssuer(certificate, issuer)) break;
  }
  return failure;
}

function findExpiryProblem(path: readonly Certificate[], now: Date) {
  for (const certificate of path) {
    const fault = findValidityProblem(certificate, now);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function acceptedPath(path: readonly Certificate[], anchor: Certificate): Search {
  const [leaf] = path;
  if (leaf?.publicJwk === undefined) return rejected('certificate_profile', 'unsupported key');
  const verdict: TrustedVerdict = {
    trusted: true,
    key: leaf.publicJwk,
    anchor: anchor.hash,
    anchorCertificate: anchor.x509.raw.toString('base64'),
    subject: leaf.subjectText,
    fingerprint: leaf.hash,
    names: namesOf(leaf),
    below: path.filter(({ hash: pathHash }) => pathHash !== anchor.hash).length,
  };
  return { path, verdict };
}

/** Node quotes names that could be mistaken for other names; a list with quotes is ignored. */
function namesOf({ x509: { subjectAltName = '' } }: Certificate): readonly string[] {
  if (subjectAltName.includes('"')) return [];
  return subjectAltName.split(', ').flatMap((name) => {
    if (name.startsWith('DNS:')) return [`DNS:${name.slice('DNS:'.length).toLowerCase()}`];
    return name.startsWith('URI:') ? [name] : [];
  });
}

function rejected(reason: RejectedVerdict['reason'], detail: string): RejectedVerdict {
  return { trusted: false, reason, detail };
}

/** Rejects a result whose path uses an algorithm that is not agreed. */
function requireAgreedAlgorithms(result: Search, agreedOnly: boolean): Search {
  const edwardsCertificate = agreedOnly && !('trusted' in result) ? result.path.find(isOfEdwards) : undefined;
  if (edwardsCertificate === undefined) return result;
  return rejected('certificate_profile', `"${edwardsCertificate.subjectText}" has an Ed25519 key, which is not an agreed algorithm`);
}

type Algorithm = { readonly key: string; readonly digest: string | null };

/** Algorithms that sign certificates: ECDSA and RSA (PKCS #1) with SHA-256, SHA-384 or SHA-512, and Ed25519. */
const ALGORITHMS = new Map<string, Algorithm>([
  ['1.2.840.10045.4.3.2', { key: 'ec', digest: 'sha256' }],
  ['1.2.840.10045.4.3.3', { key: 'ec', digest: 'sha384' }],
  ['1.2.840.10045.4.3.4', { key: 'ec', digest: 'sha512' }],
  ['1.2.840.113549.1.1.11', { key: 'rsa', digest: 'sha256' }],
  ['1.2.840.113549.1.1.12', { key: 'rsa', digest: 'sha384' }],
  ['1.2.840.113549.1.1.13', { key: 'rsa', digest: 'sha512' }],
  ['1.3.101.112', { key: 'ed25519', digest: null }],
]);

/** Returns true if the key of the certificate signed the data; the algorithm has to match the key. */
function isIssuerSigned({ publicKey }: Certificate, signed: IssuerSigned): boolean {
  try {
    return signed.algorithm.pss === undefined ? isSignedPlainly(publicKey, signed) : isSignedByPss(publicKey, signed, signed.algorithm.pss);
  } catch {
    return false;
  }
}

function isSignedPlainly(key: KeyObject, { algorithm: { oid }, toBeSigned, signature }: IssuerSigned): boolean {
  const algorithm = ALGORITHMS.get(oid);
  if (algorithm === undefined || algorithm.key !== key.asymmetricKeyType) return false;
  return verify(algorithm.digest, toBeSigned, key, signature);
}

/** RSASSA-PSS (RFC 4055 section 3), also with a key that is for PKCS #1 as well. */
function isSignedByPss(key: KeyObject, { toBeSigned, signature }: IssuerSigned, { hash, saltLength }: PssParameters): boolean {
  if (key.asymmetricKeyType !== 'rsa' && key.asymmetricKeyType !== 'rsa-pss') return false;
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  return verify(hash, toBeSigned, { key, padding, saltLength }, signature);
}
