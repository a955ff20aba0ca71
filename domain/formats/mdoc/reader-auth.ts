import { embed, encodeCbor } from '../cbor/encode.ts';
import type { EncodedCbor } from '../cbor/values.ts';

const ARRAY_OF_THREE = Buffer.from([0x83]);

/**
 * ReaderAuthenticationBytes: the detached payload of the verifier's signature (ISO/IEC 18013-5 section 9.1.4.5).
 * @param transcript SessionTranscript, CBOR.
 * @param itemsRequest ItemsRequestBytes as sent.
 */
export function readerAuthenticationBytes(transcript: Buffer, itemsRequest: EncodedCbor): Buffer {
  const parts = [ARRAY_OF_THREE, encodeCbor('ReaderAuthentication'), transcript, itemsRequest.encoded];
  return embed(Buffer.concat(parts)).encoded;
}
