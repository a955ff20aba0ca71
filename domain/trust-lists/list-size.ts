import type { TrustList } from './lote.ts';

/** What an entity or a service costs besides its texts. */
const PART_BYTES = 1_024;

/** Bytes that a list takes as it was read: of a national list in XML most is passed over. */
export function sizeOf({ entities }: TrustList): number {
  let bytes = 0;
  for (const { name, services } of entities) {
    bytes += PART_BYTES + name.length;
    for (const { certificates, history = [] } of services) {
      bytes += PART_BYTES + history.length * PART_BYTES;
      for (const certificate of certificates) bytes += certificate.length;
    }
  }
  return bytes;
}
