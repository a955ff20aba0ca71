import { hash } from 'node:crypto';
import type { TrustAnchor } from '../../application/ports/certificates.ts';
import { type Certificate, parseCertificate } from '../../domain/formats/der/certificate.ts';
import { normalizeName } from '../../domain/formats/der/name.ts';
import { isCa } from './certificate-path.ts';

/** Limit of base64 characters; certificates have less than a quarter of it. */
const MAX_CERTIFICATE_LENGTH = 24_576;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** Index of anchors by their lookup keys, so that a presentation costs no more for a longer list. */
export type AnchorIndex = {
  /** Hash of all anchors. */
  readonly id: string;
  /** Hashes of certificates that are trusted without further conditions. */
  readonly unconditional: ReadonlySet<string>;
  /** Hashes of end-entity certificates. */
  readonly pins: ReadonlySet<string>;
  /** Hashes of CA certificates. */
  readonly authorities: ReadonlySet<string>;
  /** CA certificates, base64, by their normalized subject. */
  readonly bySubject: ReadonlyMap<string, readonly string[]>;
};

export function indexAnchors(anchors: readonly TrustAnchor[]): AnchorIndex {
  const unconditional = new Set<string>();
  const pins = new Set<string>();
  const authorities = new Set<string>();
  const bySubject = new Map<string, string[]>();
  const ids: string[] = [];
  for (const { certificate: base64, pin = false, ...facts } of anchors) {
    const parsedFacts = parseFacts(base64, facts);
    if (parsedFacts === undefined) continue;
    const { hash: fingerprint, authority } = parsedFacts;
    ids.push(pin ? `pin ${fingerprint}` : fingerprint);
    if (pin) {
      unconditional.add(fingerprint);
      continue;
    }
    if (authority === null) {
      pins.add(fingerprint);
      continue;
    }
    authorities.add(fingerprint);
    const sameSubject = bySubject.get(authority) ?? [];
    bySubject.set(authority, sameSubject);
    sameSubject.push(base64);
  }
  return { id: hash('sha256', ids.join('|'), 'base64url'), unconditional, pins, authorities, bySubject };
}

type Facts = { readonly hash: string; readonly authority: string | null };

/** Thousands of certificates of lists were parsed with their lists; parsing them here would block all requests. */
function parseFacts(base64: string, { hash: fingerprint, authority }: Partial<Facts>): Facts | undefined {
  if (fingerprint !== undefined && authority !== undefined) return { hash: fingerprint, authority };
  const certificate = parse(base64);
  if (certificate === undefined) return undefined;
  return { hash: certificate.hash, authority: isCa(certificate) ? normalizeName(certificate.subject) : null };
}

/** @param base64 DER, standard base64. */
export function parse(base64: string): Certificate | undefined {
  const isText = base64.length <= MAX_CERTIFICATE_LENGTH && base64.length % 4 === 0 && BASE64.test(base64);
  return isText ? parseCertificate(Buffer.from(base64, 'base64')) : undefined;
}
