import { decode, encode, Tagged } from 'cborg';

export { Tagged };

export type Cbor = number | bigint | string | boolean | null | undefined | Uint8Array | Tagged | readonly Cbor[] | ReadonlyMap<Cbor, Cbor>;

/** A decoder for every tag number, which preserves unknown tags. */
const EVERY_TAG = new Proxy<Record<number, (content: () => unknown) => Tagged>>({}, { get: (_, tag) => Tagged.decoder(Number(tag)) });

const DECODING = { allowIndefinite: false, useMaps: true, rejectDuplicateMapKeys: true, tags: EVERY_TAG };
/** Maps keep their order, so that signed data are encoded unchanged. */
const ENCODING = { float64: true, mapSorter: () => 0 };

/** Lengths, numbers and tags take their shortest form (RFC 8949 section 4.2.1), floating point numbers eight bytes. */
export function encodeCbor(value: Cbor): Uint8Array<ArrayBuffer> {
  return new Uint8Array(encode(value, ENCODING));
}

/**
 * Decodes one item of definite lengths (RFC 8949). Integers beyond 2^53 are bigints.
 * @throws Error for an invalid item, a duplicate map key, and trailing bytes.
 */
export function decodeCbor(bytes: Uint8Array): Cbor {
  return decode(bytes, DECODING) as Cbor;
}
