import type { JsonObject } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { decodeCbor } from '../cbor/decode.ts';
import { embed, encodeCbor } from '../cbor/encode.ts';
import { parsePropertyName, toJson } from '../cbor/to-json.ts';
import type { EncodedCbor } from '../cbor/values.ts';
import type { JsonNameSpaces } from './items.ts';
import { defineLazyProperty, emptyElements } from './lazy-element.ts';
import type { KeyAuthorizations } from './mso.ts';
import { parseMap } from './parse.ts';

const ARRAY_OF_FOUR = Buffer.from([0x84]);

/**
 * DeviceAuthenticationBytes: the detached payload of the device's signature (ISO/IEC 18013-5 section 9.1.3.4).
 * @param transcript SessionTranscript, CBOR.
 * @param nameSpaces DeviceNameSpacesBytes as received.
 */
export function deviceAuthenticationBytes(transcript: Buffer, docType: string, nameSpaces: EncodedCbor): Buffer {
  const context = encodeCbor('DeviceAuthentication');
  const parts = [ARRAY_OF_FOUR, context, transcript, encodeCbor(docType), nameSpaces.encoded];
  return embed(Buffer.concat(parts)).encoded;
}

/**
 * Parses the elements that the device signed itself.
 * @throws Refusal `key_authorization` for an element that the issuer did not authorize (ISO/IEC 18013-5 section 9.3.2), `malformed` for an
 * invalid structure.
 */
export function parseDeviceElements(nameSpaces: EncodedCbor, authorizations: KeyAuthorizations): JsonNameSpaces {
  const elementsByNamespace: Record<string, JsonObject> = {};
  for (const [key, value] of parseMap(decodeCbor(nameSpaces.content), 'nameSpaces of deviceSigned')) {
    const namespace = parsePropertyName(key);
    const elements = emptyElements();
    for (const [member, element] of parseMap(value, 'a namespace of deviceSigned')) {
      const name = parsePropertyName(member);
      const allowed = authorizations.nameSpaces.has(namespace) || authorizations.dataElements.get(namespace)?.has(name);
      if (allowed !== true) throw new Refusal('key_authorization');
      defineLazyProperty(elements, name, () => toJson(element, undefined, name));
    }
    elementsByNamespace[namespace] = elements;
  }
  return elementsByNamespace;
}
