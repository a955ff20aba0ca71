import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { Certificates, type ChainVerdict, type TrustAnchor } from '../../application/ports/certificates.ts';
import { type Certificate, readCertificate } from '../../domain/formats/der/certificate.ts';
import { checkLeaf, checkRights, checkValidity, isCa, isSelfIssued, isSignedBy } from './certificate-path.ts';

type Trusted = Extract<ChainVerdict, { trusted: true }>;
type Refused = Extract<ChainVerdict, { trusted: false }>;
/** A path that holds while the time is between both instants (milliseconds). */
type Remembered = { readonly verdict: Trusted; readonly from: number; readonly until: number };
type Search = { readonly path: readonly Certificate[]; readonly verdict: Trusted } | Refused;

const MAX_CHAIN = 6;
const MAX_CERTIFICATES = 2_000;
const MAX_VERDICTS = 10_000;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/**
 * Validates paths with node:crypto. Certificates and positive verdicts are remembered: a verdict depends on
 * nothing but the certificates, the anchors and the time, and the time is looked at on each call.
 */
export class NodeCertificates extends Certificates {
  readonly #certificates = new LRUCache<string, Certificate>({ max: MAX_CERTIFICATES });
  readonly #verdicts = new LRUCache<string, Remembered>({ max: MAX_VERDICTS });
  /** Hash of a list of anchors, by the list itself: callers keep long lists and pass them again and again. */
  readonly #anchorHashes = new WeakMap<readonly TrustAnchor[], string>();

  override validate(
    chain: readonly string[],
    anchors: readonly TrustAnchor[],
    now: Date,
    profile: { readonly haip?: boolean } = {},
  ): ChainVerdict {
    const haip = profile.haip === true;
    const key = hash('sha256', `${haip}|${this.#hashOf(anchors)}|${chain.join('|')}`, 'base64url');
    const known = this.#verdicts.get(key);
    if (known !== undefined && now.getTime() >= known.from && now.getTime() <= known.until)
      return known.verdict;

    const certificates = this.#readChain(chain);
    if (!Array.isArray(certificates)) return certificates as Refused;
    const found = this.#search(certificates, anchors, now, haip);
    if ('trusted' in found) return found;
    this.#verdicts.set(key, {
      verdict: found.verdict,
      from: Math.max(...found.path.map((certificate) => certificate.notBefore.getTime())),
      until: Math.min(...found.path.map((certificate) => certificate.notAfter.getTime())),
    });
    return found.verdict;
  }

  #hashOf(anchors: readonly TrustAnchor[]): string {
    let known = this.#anchorHashes.get(anchors);
    if (known === undefined) {
      known = hash('sha256', anchors.map((anchor) => anchor.certificate).join('|'), 'base64url');
      this.#anchorHashes.set(anchors, known);
    }
    return known;
  }

  #read(base64: string): Certificate | undefined {
    let certificate = this.#certificates.get(base64);
    if (certificate === undefined && base64.length % 4 === 0 && BASE64.test(base64)) {
      certificate = readCertificate(Buffer.from(base64, 'base64'));
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

  #search(chain: readonly Certificate[], anchors: readonly TrustAnchor[], now: Date, haip: boolean): Search {
    const [leaf] = chain;
    if (leaf === undefined) return refuse('issuer_key_unresolved', 'no certificate');
    // HAIP 1.0 section 6.1.1
    if (haip && isSelfIssued(leaf)) return refuse('certificate_profile', 'the leaf is self-signed');
    const trusted = anchors
      .map((anchor) => this.#read(anchor.certificate))
      .filter((certificate) => certificate !== undefined);
    const authorities = trusted.filter(isCa);
    const inside = chain.some((certificate) =>
      authorities.some((anchor) => anchor.hash === certificate.hash),
    );
    // HAIP 1.0 section 6.1.1
    if (haip && inside) return refuse('x5c_contains_anchor', 'the chain contains its anchor');

    const pinned = trusted.find((anchor) => anchor.hash === leaf.hash);
    if (pinned !== undefined && !isCa(pinned)) {
      const fault = checkValidity(leaf, now) ?? checkLeaf(leaf);
      return fault === undefined ? accept([leaf], leaf) : refuse(fault.reason, fault.detail);
    }
    return searchPath(chain, authorities, now);
  }
}

/** Follows the chain upwards until a certificate of it is an anchor or was issued by one. */
function searchPath(chain: readonly Certificate[], authorities: readonly Certificate[], now: Date): Search {
  let failure = refuse('untrusted_chain', 'no path to a trust anchor');
  for (const [position, certificate] of chain.entries()) {
    const next = chain[position + 1];
    for (const anchor of authorities) {
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
