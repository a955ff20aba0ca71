import { Refusal } from '../../shared/refusal.ts';
import { MAX_PRESENTATION_LENGTH } from '../credential-size.ts';
import { type CompactJws, parseCompactJws } from '../jose/compact.ts';
import { MAX_DISCLOSURES, MAX_ISSUER_MEMBERS } from './limits.ts';

/** A parsed SD-JWT or SD-JWT+KB (RFC 9901 section 4). Nothing is verified yet. */
export type ParsedSdJwt = {
  readonly issuer: CompactJws;
  /** The received texts; digests cover exactly these texts. */
  readonly disclosures: readonly string[];
  /** The key binding JWT. Absent when the text ends with `~`. */
  readonly keyBinding?: CompactJws;
  /** The text covered by `sd_hash`: everything up to and including the last `~` (RFC 9901 section 4.3.1). */
  readonly boundText: string;
};

const MAX_CERTIFICATES = 6;
const HEADER_BYTES = 32 * 1024;
const DISCLOSURE = /^[A-Za-z0-9_-]+$/;

/**
 * Parses a presentation in compact form. The JSON serialization (RFC 9901 section 8) is not supported.
 * @throws Refusal `malformed` for an invalid form or an exceeded limit.
 */
export function parseSdJwt(text: string): ParsedSdJwt {
  if (text.length > MAX_PRESENTATION_LENGTH) {
    throw new Refusal('malformed', `too long: at most ${MAX_PRESENTATION_LENGTH} characters are accepted`);
  }
  const lastTilde = text.lastIndexOf('~');
  if (lastTilde < 0) throw new Refusal('malformed', 'no separator');

  const boundText = text.slice(0, lastTilde + 1);
  // One part more than allowed is sufficient to detect an excess.
  const parts = boundText.slice(0, -1).split('~', MAX_DISCLOSURES + 2);
  const [issuerText = '', ...disclosures] = parts;
  if (disclosures.length > MAX_DISCLOSURES) throw new Refusal('malformed', `too many disclosures: at most ${MAX_DISCLOSURES} are accepted`);
  if (!disclosures.every((disclosure) => DISCLOSURE.test(disclosure))) throw new Refusal('malformed', 'a part is not a disclosure');

  const issuer = parsePart(issuerText, 'the issuer-signed JWT');
  const { x5c } = issuer.header;
  if (Array.isArray(x5c) && x5c.length > MAX_CERTIFICATES) {
    throw new Refusal('malformed', `x5c is too long: at most ${MAX_CERTIFICATES} certificates are accepted`);
  }

  const binding = text.slice(lastTilde + 1);
  if (binding === '') return { issuer, disclosures, boundText };
  return { issuer, disclosures, boundText, keyBinding: parsePart(binding, 'the key binding JWT') };
}

function parsePart(text: string, what: string): CompactJws {
  const jws = parseCompactJws(text, { length: MAX_PRESENTATION_LENGTH, headerBytes: HEADER_BYTES, members: MAX_ISSUER_MEMBERS });
  if (jws === undefined) throw new Refusal('malformed', `${what} is malformed, or has more than ${MAX_ISSUER_MEMBERS} properties`);
  return jws;
}
