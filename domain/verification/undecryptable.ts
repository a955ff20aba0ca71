import { CONTENT_ENCRYPTION } from '../formats/jose/content-encryption.ts';
import { decodeJson, isJsonObject } from '../shared/json.ts';

const MAX_HEADER_LENGTH = 32 * 1024;

/** The reason why a response cannot be decrypted, as far as its header shows. The texts contain no value of the response. */
export function undecryptableReason(jwe: string, kid: string): string {
  const [protectedHeader = '', ...otherParts] = jwe.split('.', 6);
  if (otherParts.length !== 4) return 'the response is not a compact JWE of five parts';
  const header = protectedHeader.length > MAX_HEADER_LENGTH ? undefined : decodeJson(protectedHeader);
  if (!isJsonObject(header)) return 'the header of the JWE cannot be read';
  if (header['alg'] !== 'ECDH-ES') return 'the alg of the JWE is not ECDH-ES';
  if (header['kid'] === undefined) return 'the JWE has no kid';
  if (header['kid'] !== kid) return 'the kid of the JWE does not match the key of the request';
  if (!CONTENT_ENCRYPTION.some((name) => name === header['enc'])) return `the enc of the JWE is none of ${CONTENT_ENCRYPTION.join(', ')}`;
  if (Object.hasOwn(header, 'zip')) return 'the JWE is compressed, which was not offered';
  if (Object.hasOwn(header, 'crit')) return 'the JWE has critical extensions';
  return 'the JWE is encrypted to another key, or was changed';
}
