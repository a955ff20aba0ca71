import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { bounded } from '../../application/bounded.ts';
import { Certificates, type ChainVerdict, type TrustAnchor } from '../../application/ports/certificates.ts';
import { type Certificate, readCertificate } from '../../domain/formats/der/certificate.ts';
import { checkLeaf, checkRights, checkValidity, isCa, isSelfIssued, isSignedBy } from './certificate-path.ts';

type Trusted = Extract<ChainVerdict, { trusted: true }>;
type Refused = Extract<ChainVerdict, { trusted: false }>;
/** A path that holds while the time is between both instants (milliseconds). */
type Remembered = { readonly verdict: Trusted; readonly from: number; readonly until: number };
type Search = { readonly path: readonly Certificate[]; readonly verdict: Trusted } | Refused;

const MAX_CHAIN = 6;
/** Characters of base64; certificates have less than a quarter of it. */
const MAX_CERTIFICATE_LENGTH = 24_576;
/** Characters of all that are kept; parsed they take several times as much. */
const MAX_KEPT_LENGTH = 8 * 1024 * 1024;
/** What a parsed certificate costs besides, in the same measure. */
const CERTIFICATE_OVERHEAD = 2_048;
const MAX_VERDICTS = 10_000;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Validates paths with node:crypto. Certificates and positive verdicts are remembered: a verdict depends on
 * nothing but the certificates, the anchors and the time, and the time is looked at on each call.
 */
export class NodeCertificates extends Certificates {
  /** Strangers send certificates, too, so these are bounded by what they take. */
  readonly #certificates = new LRUCache<string, Certificate>({
    maxSize: MAX_KEPT_LENGTH,
    sizeCalculation: (_certificate, base64) => base64.length + CERTIFICATE_OVERHEAD,
  });
  readonly #verdicts = new LRUCache<string, Remembered>(bounded(MAX_VERDICTS));
  /** By the list of anchors itself: callers keep long lists and pass them again and again. */
  readonly #indexes = new WeakMap<readonly TrustAnchor[], AnchorIndex>();

  override validate(
    chain: readonly string[],
    anchors: readonly TrustAnchor[],
    now: Date,
    profile: { readonly haip?: boolean } = {},
  ): ChainVerdict {
    const haip = profile.haip === true;
    const index = this.#indexOf(anchors);
    const key = hash('sha256', `${haip}|${index.id}|${chain.join('|')}`, 'base64url');
    const known = this.#verdicts.get(key);
    if (known !== undefined && now.getTime() >= known.from && now.getTime() <= known.until)
      return known.verdict;

    const certificates = this.#readChain(chain);
    if (!Array.isArray(certificates)) return certificates as Refused;
    const found = this.#search(certificates, index, now, haip);
    if ('trusted' in found) return found;
    this.#verdicts.set(key, {
      verdict: found.verdict,
      from: Math.max(...found.path.map((certificate) => certificate.notBefore.getTime())),
      until: Math.min(...found.path.map((certificate) => certificate.notAfter.getTime())),
    });
    return found.verdict;
  }

  #indexOf(anchors: readonly TrustAnchor[]): AnchorIndex {
    let known = this.#indexes.get(anchors);
    if (known === undefined) {
      known = indexAnchors(anchors);
      this.#indexes.set(anchors, known);
    }
    return known;
  }

  #read(base64: string): Certificate | undefined {
    let certificate = this.#certificates.get(base64);
    if (certificate === undefined) {
      certificate = parse(base64);
      if (certificate !== undefined) this.#certificates.set(base64, certificate);
    }
    return certificate;
  }

  #readChain(chain: readonly string[]): Certificate[] | Refused {
    if (chain.length === 0 || chain.length > MAX_CHAIN)
      return refuse('issuer_key_unresolved', 'chain length');
    const certificates: Certificate[] = [];
    for (const text of chain) {
      const certificate = this.#read(text);
      if (certificate === undefined) return refuse('issuer_key_unresolved', 'not a certificate');
      certificates.push(certificate);
    }
    const hashes = new Set(certificates.map((certificate) => certificate.hash));
    return hashes.size === certificates.length
      ? certificates
      : refuse('untrusted_chain', 'a certificate stands there twice');
  }

  #search(chain: readonly Certificate[], index: AnchorIndex, now: Date, haip: boolean): Search {
    const [leaf] = chain;
    if (leaf === undefined) return refuse('issuer_key_unresolved', 'no certificate');
    // HAIP 1.0 section 6.1.1
    if (haip && isSelfIssued(leaf)) return refuse('certificate_profile', 'the leaf is self-signed');
    const inside = chain.some((certificate) => index.authorities.has(certificate.hash));
    // HAIP 1.0 section 6.1.1
    if (haip && inside) return refuse('x5c_contains_anchor', 'the chain contains its anchor');

    if (index.pins.has(leaf.hash)) {
      const fault = checkValidity(leaf, now) ?? checkLeaf(leaf);
      return fault === undefined ? accept([leaf], leaf) : refuse(fault.reason, fault.detail);
    }
    const authoritiesOf = (issuer: string) =>
      (index.bySubject.get(issuer) ?? []).flatMap((base64) => this.#read(base64) ?? []);
    return searchPath(chain, authoritiesOf, now);
  }
}

/** Anchors by what they are looked for, so that no presentation costs more for a longer list. */
type AnchorIndex = {
  /** Hash of all of them. */
  readonly id: string;
  /** Hashes of end-entity certificates. */
  readonly pins: ReadonlySet<string>;
  /** Hashes of CA certificates. */
  readonly authorities: ReadonlySet<string>;
  /** CA certificates, base64, by their subject. */
  readonly bySubject: ReadonlyMap<string, readonly string[]>;
};

function indexAnchors(anchors: readonly TrustAnchor[]): AnchorIndex {
  const pins = new Set<string>();
  const authorities = new Set<string>();
  const bySubject = new Map<string, string[]>();
  for (const { certificate: base64 } of anchors) {
    const certificate = parse(base64);
    if (certificate === undefined) continue;
    if (!isCa(certificate)) {
      pins.add(certificate.hash);
      continue;
    }
    authorities.add(certificate.hash);
    const alike = bySubject.get(certificate.subject) ?? [];
    bySubject.set(certificate.subject, alike);
    alike.push(base64);
  }
  const id = hash('sha256', anchors.map((anchor) => anchor.certificate).join('|'), 'base64url');
  return { id, pins, authorities, bySubject };
}

function parse(base64: string): Certificate | undefined {
  const isText = base64.length <= MAX_CERTIFICATE_LENGTH && base64.length % 4 === 0 && BASE64.test(base64);
  return isText ? readCertificate(Buffer.from(base64, 'base64')) : undefined;
}

/** Follows the chain upwards until a certificate of it is an anchor or was issued by one. */
function searchPath(
  chain: readonly Certificate[],
  authoritiesOf: (issuer: string) => readonly Certificate[],
  now: Date,
): Search {
  let failure = refuse('untrusted_chain', 'no path to a trust anchor');
  for (const [position, certificate] of chain.entries()) {
    const next = chain[position + 1];
    // RFC 5280 section 6.1.3 (a)(4): the one who issued it has the name that it calls its issuer.
    for (const anchor of authoritiesOf(certificate.issuer)) {
      // A leaf that is itself an anchor has no path: the anchor must be another certificate.
      if (anchor.hash === chain[0]?.hash || !isSignedBy(certificate, anchor)) continue;
      const path = [...chain.slice(0, position + 1), anchor];
      const fault = checkRights(path) ?? firstExpired(path, now);
      if (fault === undefined) return accept(path, anchor);
      failure = refuse(fault.reason, fault.detail);
    }
    // RFC 7515 section 4.1.6: each certificate certifies the one before it.
    if (next === undefined || !isSignedBy(certificate, next)) break;
  }
  return failure;
}

function firstExpired(path: readonly Certificate[], now: Date) {
  for (const certificate of path) {
    const fault = checkValidity(certificate, now);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function accept(path: readonly Certificate[], anchor: Certificate): Search {
  const [leaf] = path;
  if (leaf?.publicJwk === undefined) return refuse('certificate_profile', 'unsupported key');
  const below = path.length === 1 ? path : path.slice(0, -1);
  const verdict: Trusted = {
    trusted: true,
    key: leaf.publicJwk,
    anchor: anchor.hash,
    subject: leaf.subjectText,
    authorityKeyIds: below.flatMap(({ authorityKeyId }) => authorityKeyId ?? []),
  };
  return { path, verdict };
}

function refuse(reason: Refused['reason'], detail: string): Refused {
  return { trusted: false, reason, detail };
}
