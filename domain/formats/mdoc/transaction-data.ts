import { hash } from 'node:crypto';
import { isTexts, type Json } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { hashNameOf } from '../sd-jwt/disclosures.ts';
import type { JsonNameSpaces } from './items.ts';

/** Where a device confirms transaction data of one type: the element that the type defines for it. */
export type ConfirmingElement = { readonly namespace: string; readonly element: string };

export type ExpectedTransactionData = ConfirmingElement & {
  /** The entry exactly as it stood in the request. */
  readonly text: string;
  /** `transaction_data_hashes_alg` of the entry. */
  readonly algorithms: readonly string[];
  /** Whether no other credential may confirm it. */
  readonly required: boolean;
};

/**
 * Checks the hashes that a device signed (OpenID4VP 1.0 appendix B.2.1): an element holds the hash of an entry as a
 * byte string, or several of them in an array. Each hash must belong to an entry; the order says nothing.
 * @param deviceSigned elements that the issuer let the device sign, as JSON, byte strings as base64url.
 * @returns the confirmed texts.
 * @throws Refusal `transaction_data_missing`, `transaction_data_mismatch`.
 */
export function verifyDeviceTransactionData(deviceSigned: JsonNameSpaces, expected: readonly ExpectedTransactionData[]): readonly string[] {
  const confirmed = new Set<string>();
  const byElement = Map.groupBy(expected, (one) => JSON.stringify([one.namespace, one.element]));
  for (const own of byElement.values()) {
    const { namespace = '', element = '' } = own[0] ?? {};
    const value = deviceSigned[namespace]?.[element];
    if (value === undefined) continue;
    for (const found of parseHashes(value)) {
      const entry = own.find((one) => hashesOf(one).includes(found));
      if (entry === undefined) throw new Refusal('transaction_data_mismatch', 'unknown hash');
      confirmed.add(entry.text);
    }
  }
  const missing = expected.find(({ required, text }) => required && !confirmed.has(text));
  if (missing !== undefined) throw new Refusal('transaction_data_missing', `${missing.namespace} ${missing.element}`);
  return [...confirmed];
}

function parseHashes(value: Json): readonly string[] {
  const list = Array.isArray(value) ? value : [value];
  if (!isTexts(list) || list.length === 0) throw new Refusal('transaction_data_mismatch', 'not a hash');
  return list;
}

/** With every algorithm that the entry names; SHA-256 unless it names any (OpenID4VP 1.0 appendix B.3.3.1). */
function hashesOf({ text, algorithms }: ExpectedTransactionData): readonly string[] {
  const names = algorithms.length > 0 ? algorithms : ['sha-256'];
  return names.flatMap((name) => {
    const hashName = hashNameOf(name);
    return hashName === undefined ? [] : [hash(hashName, text, 'base64url')];
  });
}
