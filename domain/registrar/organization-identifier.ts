import { parseCertificate } from '../formats/der/certificate.ts';
import { parseElements, parseOid, parseSequence } from '../formats/der/reader.ts';
import { decodeUtf8 } from '../shared/utf8.ts';

/** `organizationIdentifier` (X.520), such as `VATDE-123456789` (ETSI EN 319 412-1 section 5.1.4). */
const ORGANIZATION_IDENTIFIER = '2.5.4.97';

/**
 * Identifiers of the organization in a certificate.
 * @param certificate DER in standard base64.
 * @returns an empty list for certificates without one, such as those of internal CAs; an invalid value becomes an empty text, which equals
 * no identifier.
 */
export function organizationIdentifiers(certificate: string): readonly string[] {
  const subject = parseCertificate(Buffer.from(certificate, 'base64'))?.subject;
  if (subject === undefined) return [];
  return parseSequence(Buffer.from(subject, 'hex')).flatMap((relative) =>
    parseElements(relative.content).flatMap((pair) => {
      const [type, value] = parseSequence(pair.encoded);
      if (type === undefined || parseOid(type.content) !== ORGANIZATION_IDENTIFIER) return [];
      return [(value && decodeUtf8(value.content)) ?? ''];
    }),
  );
}
