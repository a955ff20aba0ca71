import { jsonOfBase64 } from '../../../../wallet/src/core/formats/base64.ts';
import type { Recognised } from './recognised.ts';

type Members = Readonly<Record<string, unknown>>;

const TYPES: Readonly<Record<string, string>> = {
  'statuslist+jwt': 'A status list token: which credentials are revoked (Token Status List).',
  'oauth-authz-req+jwt': 'A signed request for a presentation (OpenID4VP).',
  'openid4vci-proof+jwt': 'A proof that a wallet holds a key (OpenID4VCI).',
  'dpop+jwt': 'A proof of possession for an access token (RFC 9449).',
  'oauth-client-attestation+jwt': 'An attestation of a wallet.',
  'key-attestation+jwt': 'An attestation of keys of a wallet.',
  'kb+jwt': 'What binds a presentation to its holder (SD-JWT).',
  'at+jwt': 'An access token.',
};

/** A JWT, a JWE or an SD-JWT. Signatures are not verified. */
export function readToken(text: string): Recognised | undefined {
  const [token = '', ...disclosed] = text.split('~');
  const parts = token.split('.');
  if (parts.length !== 3 && parts.length !== 5) return undefined;
  const header = jsonOf(parts[0] ?? '');
  if (parts.length === 5)
    return { sentence: 'An encrypted token (JWE): only the one with the key can read it.', parts: [{ title: 'Header', value: header }] };
  const payload = jsonOf(parts[1] ?? '');
  const shown = [
    { title: 'Header', value: header },
    { title: 'Payload', value: payload },
  ];
  if (disclosed.length === 0) return { sentence: `${kindOf(header)}${timeOf(payload)}`, parts: shown };
  const binding = disclosed.at(-1) ?? '';
  const isBound = binding.split('.').length === 3;
  const disclosures = disclosed.filter((disclosure) => disclosure !== '' && !disclosure.includes('.')).map(disclosureOf);
  const count = `${disclosures.length} ${disclosures.length === 1 ? 'claim' : 'claims'} disclosed`;
  const type = typeof payload['vct'] === 'string' ? ` of type ${payload['vct']}` : '';
  return {
    sentence: `A credential (SD-JWT)${type}, ${count}${isBound ? ', presented by its holder' : ''}.${timeOf(payload)}`,
    parts: [
      ...shown,
      { title: 'Disclosures', value: disclosures },
      ...(isBound ? [{ title: 'Key binding', value: jsonOf(binding.split('.')[1] ?? '') }] : []),
    ],
  };
}

function kindOf({ typ }: Members): string {
  return (typeof typ === 'string' && TYPES[typ.replace(/^application\//, '')]) || 'A signed token (JWT).';
}

function timeOf({ exp }: Members): string {
  if (typeof exp !== 'number' || Math.abs(exp) > 8e12) return '';
  const end = new Date(exp * 1000);
  return ` It ${end.getTime() < Date.now() ? 'ended' : 'ends'} ${end.toLocaleString()}.`;
}

function jsonOf(encoded: string): Members {
  const value = jsonOfBase64(encoded);
  if (typeof value !== 'object' || value === null) throw new Error('this is no token');
  return value as Members;
}

/** RFC 9901: salt, name and value, or salt and value within an array. */
function disclosureOf(encoded: string): unknown {
  const parts = jsonOfBase64(encoded);
  if (!Array.isArray(parts)) throw new Error('this is no disclosure');
  return parts.length === 3 ? { [String(parts[1])]: parts[2] } : parts[1];
}
