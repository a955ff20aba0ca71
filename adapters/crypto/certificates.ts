import { constants, hash, type KeyObject, verify } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  Certificates,
  type ChainProfile,
  type ChainVerdict,
  type IssuerSigned,
  type TrustAnchor,
} from '../../application/ports/certificates.ts';
import { partOfMemory } from '../../application/tenant-cache/bounded.ts';
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

type Trusted = Extract<ChainVerdict, { trusted: true }>;
type Refused = Extract<ChainVerdict, { trusted: false }>;
/** A path that holds while the time is between both instants (milliseconds). */
type Remembered = { readonly verdict: ChainVerdict; readonly from: number; readonly until: number };
type Search = { readonly path: readonly Certificate[]; readonly verdict: Trusted } | Refused;

const MAX_CHAIN = 6;
/** Characters of all that are kept; parsed they take several times as much. */
const MAX_KEPT_LENGTH = 8 * 1024 * 1024;
/** What a parsed certificate costs besides, in the same measure. */
const CERTIFICATE_OVERHEAD = 2_048;
/** Characters of the texts of all verdicts; trust and refusals have a share each, so that neither drives out the other. */
const MAX_VERDICTS_LENGTH = 4 * 1024 * 1024;
/** What a verdict costs besides, in the same measure. */
const VERDICT_OVERHEAD = 1_024;
/** As long as a wallet, or somebody who wants to keep us busy, tries again at once. */
const REFUSAL_MS = 10_000;
/** Anchors of one name that are tried for one chain; more than one there are only while a CA changes its key. */
const MAX_TRIED = 32;

/**
 * Validates paths with node:crypto. Certificates and verdicts are remembered: a verdict depends on nothing but the
 * certificates, the anchors, the purpose and the time, and the time is looked at on each call.
 */
export class NodeCertificates extends Certificates {
  /** Strangers send certificates, too, so these are bounded by what they take. */
  readonly #certificates = new LRUCache<string, Certificate>({
    maxSize: partOfMemory(MAX_KEPT_LENGTH),
    sizeCalculation: (_certificate, base64) => base64.length + CERTIFICATE_OVERHEAD,
  });
  readonly #verdicts = verdicts();
  readonly #refusals = verdicts();
  /** By the list of anchors itself: callers keep long lists and pass them again and again. */
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
    const known = this.#verdicts.get(key) ?? this.#refusals.get(key);
    if (known !== undefined && time >= known.from && time <= known.until) return known.verdict;

    const certificates = this.#readChain(chain);
    const found = Array.isArray(certificates)
      ? agreed(this.#search(certificates, index, now, { purpose, haip }), agreedOnly)
      : (certificates as Refused);
    if ('trusted' in found) {
      // Time alone may mend it, and a minute of difference is forgiven.
      if (found.reason !== 'certificate_expired') this.#refusals.set(key, { verdict: found, from: time, until: time + REFUSAL_MS });
      return found;
    }
    this.#verdicts.set(key, {
      verdict: found.verdict,
      from: Math.max(...found.path.map((certificate) => certificate.notBefore.getTime())),
      until: Math.min(...found.path.map((certificate) => certificate.notAfter.getTime())),
    });
    return found.verdict;
  }

  override isResponder(responder: string, issuer: string, now: Date): boolean {
    const [leaf, authority] = [this.#read(responder), this.#read(issuer)];
    if (leaf === undefined || authority === undefined || !namesIssuer(leaf, authority)) return false;
    const path = [leaf, authority];
    return isSigned(path) && findRightsProblem(path, 'OCSP answer') === undefined && firstExpired(path, now) === undefined;
  }

  override hasSigned(issuer: string, signed: IssuerSigned): boolean {
    const certificate = this.#read(issuer);
    return certificate !== undefined && isIssuerSigned(certificate, signed);
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
    if (chain.length === 0 || chain.length > MAX_CHAIN) return refuse('issuer_key_unresolved', 'chain length');
    const certificates: Certificate[] = [];
    for (const text of chain) {
      const certificate = this.#read(text);
      if (certificate === undefined) return refuse('issuer_key_unresolved', 'not a certificate');
      certificates.push(certificate);
    }
    const hashes = new Set(certificates.map((certificate) => certificate.hash));
    return hashes.size === certificates.length ? certificates : refuse('untrusted_chain', 'a certificate stands there twice');
  }

  #search(chain: readonly Certificate[], index: AnchorIndex, now: Date, { purpose, haip }: ChainProfile): Search {
    const [leaf] = chain;
    if (leaf === undefined) return refuse('issuer_key_unresolved', 'no certificate');
    // HAIP 1.0 section 6.1.1
    if (haip === true && isSelfIssued(leaf)) return refuse('certificate_profile', 'the leaf is self-signed');
    const inside = chain.some((certificate) => index.authorities.has(certificate.hash));
    // HAIP 1.0 section 6.1.1
    if (haip === true && inside) return refuse('x5c_contains_anchor', 'the chain contains its anchor');

    if (index.unconditional.has(leaf.hash)) {
      const fault = findValidityProblem(leaf, now);
      if (fault !== undefined) return refuse(fault.reason, fault.detail);
      const found = accept([leaf], leaf);
      return 'trusted' in found ? found : { ...found, verdict: { ...found.verdict, isPin: true } };
    }
    if (index.pins.has(leaf.hash)) {
      const fault = findValidityProblem(leaf, now) ?? findLeafProblem(leaf, purpose);
      return fault === undefined ? accept([leaf], leaf) : refuse(fault.reason, fault.detail);
    }
    const authoritiesOf = (issuer: string) =>
      (index.bySubject.get(normalizeName(issuer)) ?? []).flatMap((base64) => this.#read(base64) ?? []);
    return searchPath(chain, authoritiesOf, now, purpose);
  }
}

function verdicts() {
  return new LRUCache<string, Remembered>({
    maxSize: partOfMemory(MAX_VERDICTS_LENGTH),
    sizeCalculation: ({ verdict }, key) => key.length + textOf(verdict).length + VERDICT_OVERHEAD,
  });
}

function textOf(verdict: ChainVerdict): string {
  return verdict.trusted ? verdict.subject + verdict.anchorCertificate + verdict.names.join() : verdict.detail;
}

/**
 * Follows the names upwards until a certificate says that an anchor issued it. No signature is looked at before, so
 * that the certificates of strangers, whatever their keys, cost no more than reading them.
 */
function searchPath(
  chain: readonly Certificate[],
  authoritiesOf: (issuer: string) => readonly Certificate[],
  now: Date,
  purpose: CertificatePurpose,
): Search {
  let failure = refuse('untrusted_chain', 'no path to a trust anchor');
  let tried = 0;
  for (const [position, certificate] of chain.entries()) {
    const next = chain[position + 1];
    // RFC 5280 section 6.1.3 (a)(4): the one who issued it has the name that it calls its issuer.
    for (const anchor of authoritiesOf(certificate.issuer)) {
      // A leaf that is itself an anchor has no path: the anchor must be another certificate.
      if (anchor.hash === chain[0]?.hash || !namesIssuer(certificate, anchor)) continue;
      if (tried++ === MAX_TRIED) return failure;
      const path = [...chain.slice(0, position + 1), anchor];
      if (!isSigned(path)) continue;
      const fault = findRightsProblem(path, purpose) ?? firstExpired(path, now);
      if (fault === undefined) return accept(path, anchor);
      failure = refuse(fault.reason, fault.detail);
    }
    // RFC 7515 section 4.1.6: each certificate certifies the one before it.
    if (next === undefined || !namesIssuer(certificate, next)) break;
  }
  return failure;
}

function firstExpired(path: readonly Certificate[], now: Date) {
  for (const certificate of path) {
    const fault = findValidityProblem(certificate, now);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function accept(path: readonly Certificate[], anchor: Certificate): Search {
  const [leaf] = path;
  if (leaf?.publicJwk === undefined) return refuse('certificate_profile', 'unsupported key');
  const verdict: Trusted = {
    trusted: true,
    key: leaf.publicJwk,
    anchor: anchor.hash,
    anchorCertificate: anchor.x509.raw.toString('base64'),
    subject: leaf.subjectText,
    fingerprint: leaf.hash,
    names: namesOf(leaf),
    below: path.filter(({ hash: own }) => own !== anchor.hash).length,
  };
  return { path, verdict };
}

/** Node puts what could be mistaken for another name into quotes; where there is any, none is believed. */
function namesOf({ x509: { subjectAltName = '' } }: Certificate): readonly string[] {
  if (subjectAltName.includes('"')) return [];
  return subjectAltName.split(', ').flatMap((name) => {
    if (name.startsWith('DNS:')) return [`DNS:${name.slice('DNS:'.length).toLowerCase()}`];
    return name.startsWith('URI:') ? [name] : [];
  });
}

function refuse(reason: Refused['reason'], detail: string): Refused {
  return { trusted: false, reason, detail };
}

/** What was found, unless something of its path is by an algorithm that does not count. */
function agreed(found: Search, agreedOnly: boolean): Search {
  const other = agreedOnly && !('trusted' in found) ? found.path.find(isOfEdwards) : undefined;
  if (other === undefined) return found;
  return refuse('certificate_profile', `"${other.subjectText}" is of Ed25519, which is not agreed`);
}

type Algorithm = { readonly key: string; readonly digest: string | null };

/** ECDSA and RSA (PKCS #1) with SHA-256, SHA-384 or SHA-512, and Ed25519: the ones that certificates are signed with. */
const ALGORITHMS = new Map<string, Algorithm>([
  ['1.2.840.10045.4.3.2', { key: 'ec', digest: 'sha256' }],
  ['1.2.840.10045.4.3.3', { key: 'ec', digest: 'sha384' }],
  ['1.2.840.10045.4.3.4', { key: 'ec', digest: 'sha512' }],
  ['1.2.840.113549.1.1.11', { key: 'rsa', digest: 'sha256' }],
  ['1.2.840.113549.1.1.12', { key: 'rsa', digest: 'sha384' }],
  ['1.2.840.113549.1.1.13', { key: 'rsa', digest: 'sha512' }],
  ['1.3.101.112', { key: 'ed25519', digest: null }],
]);

/** Whether the key of a certificate signed this; the algorithm has to fit the key. */
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

/** RFC 4055 section 3: also with a key that is for PKCS #1 as well. */
function isSignedByPss(key: KeyObject, { toBeSigned, signature }: IssuerSigned, { hash, saltLength }: PssParameters): boolean {
  if (key.asymmetricKeyType !== 'rsa' && key.asymmetricKeyType !== 'rsa-pss') return false;
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  return verify(hash, toBeSigned, { key, padding, saltLength }, signature);
}
