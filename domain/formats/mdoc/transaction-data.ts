import { hash } from 'node:crypto';
import { isStringArray, type Json } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { hashNameOf } from '../sd-jwt/disclosures.ts';
import type { JsonNameSpaces } from './items.ts';

/** The element in which a device confirms transaction data of one type, defined by the type. */
export type ConfirmingElement = { readonly namespace: string; readonly element: string };

export type ExpectedTransactionData = ConfirmingElement & {
  /** The entry exactly as in the request. */
  readonly text: string;
  /** `transaction_data_hashes_alg` of the entry. */
  readonly algorithms: readonly string[];
  /** True if no other credential may confirm the entry. */
  readonly required: boolean;
};

/**
 * Verifies the hashes that a device signed (OpenID4VP 1.0 appendix B.2.1): an element contains the hash of an entry as a byte string, or
 * several of them in an array. Each hash must belong to an entry; their order is irrelevant.
 * @param deviceSigned authorized elements signed by the device, as JSON, byte strings as base64url.
 * @returns the confirmed texts.
 * @throws Refusal `transaction_data_missing`, `transaction_data_mismatch`.
 */
export function verifyDeviceTransactionData(deviceSigned: JsonNameSpaces, expected: readonly ExpectedTransactionData[]): readonly string[] {
  const confirmed = new Set<string>();
  const byElement = Map.groupBy(expected, (expectation) => JSON.stringify([expectation.namespace, expectation.element]));
  for (const group of byElement.values()) {
    const { namespace = '', element = '' } = group[0] ?? {};
    const value = deviceSigned[namespace]?.[element];
    if (value === undefined) continue;
    for (const deviceHash of parseHashes(value)) {
      const entry = group.find((expectation) => hashesOf(expectation).includes(deviceHash));
      if (entry === undefined) throw new Refusal('transaction_data_mismatch', 'unknown hash');
      confirmed.add(entry.text);
    }
  }
  const missingEntry = expected.find(({ required, text }) => required && !confirmed.has(text));
  if (missingEntry !== undefined) throw new Refusal('transaction_data_missing', `${missingEntry.namespace} ${missingEntry.element}`);
  return [...confirmed];
}

function parseHashes(value: Json): readonly string[] {
  const list = Array.isArray(value) ? value : [value];
  if (!isStringArray(list) || list.length === 0) throw new Refusal('transaction_data_mismatch', 'not a hash');
  return list;
}

/** Hashes by every algorithm of the entry; SHA-256 by default (OpenID4VP 1.0 appendix B.3.3.1). */
function hashesOf({ text, algorithms }: ExpectedTransactionData): readonly string[] {
  const names = algorithms.length > 0 ? algorithms : ['sha-256'];
  return names.flatMap((name) => {
    const hashName = hashNameOf(name);
    return hashName === undefined ? [] : [hash(hashName, text, 'base64url')];
  });
}
