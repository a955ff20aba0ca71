import { hash } from 'node:crypto';
import { decodeJson, isJsonObject, isTexts, type Json, type JsonObject } from '../../shared/json.ts';
import { Refusal } from '../../shared/refusal.ts';
import { hashNameOf } from './disclosures.ts';

/**
 * Checks `transaction_data_hashes` (OpenID4VP 1.0 appendix B.3.3.1). A hash is over the text exactly as it
 * stood in the request. Each required text must be confirmed and each hash must belong to a text; the order
 * says nothing. Without any expected text the claims are ignored.
 * @returns the confirmed texts.
 */
export function checkTransactionData(
  payload: JsonObject,
  required: readonly string[],
  alternatives: readonly string[],
): readonly string[] {
  if (required.length === 0 && alternatives.length === 0) return [];
  const hashes = payload['transaction_data_hashes'];
  if (hashes === undefined && required.length === 0) return [];
  if (hashes === undefined) throw new Refusal('transaction_data_missing');

  const sent = [...required, ...alternatives];
  const hashName = readHashName(payload, sent);
  const textOfHash = new Map(sent.map((text) => [hash(hashName, text, 'base64url'), text]));
  const confirmed = readHashes(hashes).map((value) => textOfHash.get(value));
  // OpenID4VP 1.0 appendix B.3.3.1: each hash maps to an entry of the request.
  if (confirmed.includes(undefined)) throw new Refusal('transaction_data_mismatch', 'unknown hash');
  const texts = new Set(confirmed.filter((text) => text !== undefined));
  if (!required.every((text) => texts.has(text))) {
    throw new Refusal('transaction_data_mismatch', 'an entry is not confirmed');
  }
  return [...texts];
}

function readHashes(value: Json): readonly string[] {
  if (!isTexts(value) || value.length === 0) {
    throw new Refusal('transaction_data_mismatch', 'not a list of hashes');
  }
  return value;
}

/** OpenID4VP 1.0 appendix B.3.3.1: one algorithm for all hashes; it is named when the request names any. */
function readHashName(payload: JsonObject, sent: readonly string[]): string {
  const offers = sent.map(offeredAlgorithms).filter((offer) => offer !== undefined);
  const named = payload['transaction_data_hashes_alg'];
  if (named === undefined && offers.length > 0) throw new Refusal('transaction_data_alg', 'not named');
  const algorithm = named ?? 'sha-256';
  const offered = offers.length > 0 ? offers : [['sha-256']];
  if (!offered.every((offer) => offer.includes(algorithm))) throw new Refusal('transaction_data_alg');
  const hashName = hashNameOf(algorithm);
  if (hashName === undefined) throw new Refusal('transaction_data_alg');
  return hashName;
}

function offeredAlgorithms(text: string): readonly Json[] | undefined {
  const entry = decodeJson(text);
  const offer = isJsonObject(entry) ? entry['transaction_data_hashes_alg'] : undefined;
  return Array.isArray(offer) && offer.length > 0 ? (offer as readonly Json[]) : undefined;
}
