import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { Refusal } from '../shared/refusal.ts';
import { parseStatusReference, type StatusReference } from './reference.ts';

/** A status list entry of a wallet provider that an attestation references. */
export type AttestedStatus = {
  /** The property with the reference, for messages to the operator. */
  readonly place: string;
  readonly reference: StatusReference;
  /** End of the entry's maintenance in seconds since 1970; absent if the provider states none. */
  readonly keptUntil?: number;
};

/**
 * Properties in which European wallet providers reference the status of the wallet or of its key storage (TS3 1.5 sections 2.3.1 and
 * 2.3.2). All that are present are checked, independent of the kind of attestation.
 */
const MAINTAINED = ['client_status', 'key_storage_status'] as const;

/**
 * The status references of a wallet or key attestation: `status` (OpenID4VCI 1.0 appendices D.1 and E), `client_status.status` and
 * `key_storage_status.status`.
 * @returns an empty list for an attestation that cannot be revoked.
 * @throws Refusal `status_invalid` for an unsupported reference, or one whose maintenance has ended.
 */
export function parseAttestedStatuses(payload: JsonObject, now: Date): readonly AttestedStatus[] {
  const plain = within('status', () => parseStatusReference(payload));
  const maintained = MAINTAINED.flatMap((place) => {
    const value = payload[place];
    return value === undefined ? [] : [within(place, () => parseMaintained(place, value, now))];
  });
  return [...(plain === undefined ? [] : [{ place: 'status', reference: plain }]), ...maintained];
}

function parseMaintained(place: string, value: Json, now: Date): AttestedStatus {
  if (!isJsonObject(value)) throw new Refusal('status_invalid', 'is no object');
  const reference = parseStatusReference(value);
  if (reference === undefined) throw new Refusal('status_invalid', 'has no status');
  const { exp } = value;
  if (exp === undefined) return { place, reference };
  // RFC 7519 section 2, NumericDate
  if (typeof exp !== 'number' || !Number.isFinite(exp)) throw new Refusal('status_invalid', 'exp is no time');
  // TS3 1.5 section 2.4.1: the entry has no meaning afterwards.
  if (exp * 1000 <= now.getTime()) throw new Refusal('status_invalid', 'exp has passed');
  return { place, reference, keptUntil: exp };
}

/** Adds the property to the reason. */
function within<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(error.reason, `${place}: ${error.message.slice(error.reason.length + 2)}`);
  }
}
