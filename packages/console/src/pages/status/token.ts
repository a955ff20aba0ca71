import { bytesOfBase64 } from '../../../../wallet/src/core/formats/base64.ts';
import { readJwt } from '../../../../wallet/src/core/formats/jwt.ts';
import { at } from '../../parts/json-paths.ts';

export type ReadList = {
  readonly header: unknown;
  readonly claims: unknown;
  readonly bits: number;
  readonly bytes: Uint8Array;
  readonly entries: number;
};

const MAX_BYTES = 16 * 1024 * 1024;

/** @throws Error for what is no status list token (Token Status List section 5.1). */
export async function readToken(jwt: string): Promise<ReadList> {
  const { header, payload: claims } = readJwt(jwt.trim());
  const bits = at(claims, 'status_list', 'bits');
  const packed = at(claims, 'status_list', 'lst');
  if ((bits !== 1 && bits !== 2 && bits !== 4 && bits !== 8) || typeof packed !== 'string')
    throw new Error('The token has no status list.');
  const bytes = await inflate(bytesOfBase64(packed));
  return { header, claims, bits, bytes, entries: (bytes.length * 8) / bits };
}

/** @returns undefined beyond the end of the list. */
export function statusAt({ bits, bytes, entries }: ReadList, index: number): number | undefined {
  if (!Number.isSafeInteger(index) || index < 0 || index >= entries) return undefined;
  const place = index * bits;
  return ((bytes[Math.floor(place / 8)] ?? 0) >> (place % 8)) & ((1 << bits) - 1);
}

export function countsOf(list: ReadList): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (let index = 0; index < list.entries; index++) {
    const status = statusAt(list, index) ?? 0;
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return counts;
}

const NAMES = ['valid', 'revoked', 'suspended'];

export function nameOfStatus(status: number): string {
  return NAMES[status] ?? `status ${status}`;
}

async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  const reader = stream.getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > MAX_BYTES) {
      await reader.cancel();
      throw new Error('The list is larger than this page shows.');
    }
    parts.push(value);
  }
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
