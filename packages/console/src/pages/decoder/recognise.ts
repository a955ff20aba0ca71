import { bytesOf, textOf } from './bytes.ts';
import { diagnose, type Item, keysOf, readCbor } from './cbor.ts';
import { type Certificate, readCertificate } from './certificate.ts';
import { holdsPrivateKey, PRIVATE_KEY } from './private-key.ts';
import type { Recognised } from './recognised.ts';
import { readToken } from './tokens.ts';

/** Characters that are looked at. */
const MAX_LENGTH = 2_400_000;
const MAX_CERTIFICATES = 20;
const OFFERS = ['credential_offer', 'credential_offer_uri'];
const REQUESTS = ['request_uri', 'request', 'dcql_query', 'response_type'];

/** @returns undefined for what it does not know. */
export function recognise(pasted: string, now = new Date()): Recognised | undefined {
  const text = pasted.trim();
  if (text === '' || text.length > MAX_LENGTH) return undefined;
  if (holdsPrivateKey(text)) return { sentence: PRIVATE_KEY, parts: [], isPrivate: true };
  for (const read of [pemOf, linkOf, didOf, readToken, jsonOf, binaryOf]) {
    try {
      const found = read(text, now);
      if (found !== undefined) return found;
    } catch {
      // It only looked like one.
    }
  }
  return undefined;
}

function pemOf(text: string, now: Date): Recognised | undefined {
  const blocks = [...text.matchAll(/-----BEGIN CERTIFICATE-----([\s\S]*?)-----END CERTIFICATE-----/g)];
  if (blocks.length === 0) return undefined;
  const read = blocks.slice(0, MAX_CERTIFICATES).map(([, body = '']) => {
    const der = bytesOf(body);
    if (der === undefined) throw new Error('this is no base64');
    return readCertificate(der, now);
  });
  return certificates(read);
}

function certificates(read: readonly Certificate[]): Recognised {
  const [first] = read;
  if (first === undefined) throw new Error('there is none');
  const { subject, daysLeft } = first;
  const time = daysLeft < 0 ? `ended ${-daysLeft} days ago` : `ends in ${daysLeft} days`;
  const more = read.length === 1 ? '' : `, and ${read.length - 1} more`;
  return {
    sentence: `A certificate of ${subject}; it ${time}${more}.`,
    parts: read.map((value, index) => ({ title: `Certificate ${index + 1}`, value })),
  };
}

function linkOf(text: string): Recognised | undefined {
  if (!/^[a-z][a-z0-9+.-]*:\S*\?\S+$/i.test(text)) return undefined;
  const members = Object.fromEntries(new URLSearchParams(text.slice(text.indexOf('?') + 1)));
  const has = (names: readonly string[]) => names.some((name) => Object.hasOwn(members, name));
  if (!has(OFFERS) && !has(REQUESTS)) return undefined;
  const value = Object.fromEntries(Object.entries(members).map(([name, said]) => [name, unfolded(said)]));
  const sentence = has(OFFERS)
    ? 'A link that offers a credential to a wallet (OpenID4VCI).'
    : 'A link that asks a wallet for a presentation (OpenID4VP).';
  return { sentence, parts: [{ title: 'In the link', value }] };
}

function unfolded(text: string): unknown {
  if (!/^[[{]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function didOf(text: string): Recognised | undefined {
  const [, method, rest = ''] = /^did:([a-z0-9]+):([^\s#?]+)/.exec(text) ?? [];
  if (method === undefined) return undefined;
  if (method === 'jwk') {
    const bytes = bytesOf(rest);
    const value = bytes && JSON.parse(textOf(bytes));
    return { sentence: 'A DID that is its own key (did:jwk).', parts: [{ title: 'Key', value }] };
  }
  if (method === 'web') {
    const [host = '', ...path] = rest.split(':').map(decodeURIComponent);
    const place = path.length === 0 ? '/.well-known' : `/${path.join('/')}`;
    const value = `https://${host}${place}/did.json`;
    return { sentence: `A DID whose document is published by ${host} (did:web).`, parts: [{ title: 'Document', value }] };
  }
  return { sentence: `A DID of the method ${method}.`, parts: [] };
}

function jsonOf(text: string): Recognised | undefined {
  if (!/^[[{]/.test(text)) return undefined;
  const value = JSON.parse(text) as Record<string, unknown>;
  const has = (name: string) => Object.hasOwn(value, name);
  if (has('kty')) return { sentence: `A key (JWK, ${value['kty']}).`, parts: [{ title: 'Key', value }] };
  const sentence = has('requestId') ? 'A refusal of the service. Its request id names it in the log.' : 'JSON.';
  return { sentence, parts: [{ title: 'In it', value }] };
}

function binaryOf(text: string, now: Date): Recognised | undefined {
  const bytes = bytesOf(text);
  if (bytes === undefined) return undefined;
  if (bytes[0] === 0x30) return certificates([readCertificate(bytes, now)]);
  const item = readCbor(bytes);
  if (item.kind === 'plain') return undefined;
  return { sentence: cborSentence(item), parts: [{ title: 'Diagnostic notation (RFC 8949)', value: diagnose(item) }] };
}

function cborSentence(item: Item): string {
  const keys = keysOf(item);
  if (keys.includes('issuerAuth')) return 'A credential as an mdoc, as its issuer signed it (ISO 18013-5 IssuerSigned).';
  if (keys.includes('documents')) return 'What a wallet presents of mdocs (ISO 18013-5 DeviceResponse).';
  return 'CBOR.';
}
