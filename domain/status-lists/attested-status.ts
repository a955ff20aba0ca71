import { isJsonObject, type Json, type JsonObject } from '../shared/json.ts';
import { Refusal } from '../shared/refusal.ts';
import { parseStatusReference, type StatusReference } from './reference.ts';

/** An entry of a wallet provider's status list that an attestation names. */
export type AttestedStatus = {
  /** The member that names it, for an operator. */
  readonly place: string;
  readonly reference: StatusReference;
  /** Seconds since 1970: until then the provider keeps the entry; absent where nothing says so. */
  readonly keptUntil?: number;
};

/**
 * Members in which European wallet providers say how the wallet, or where its keys live, stands (TS3 1.5 sections 2.3.1
 * and 2.3.2). Which of them stands in which attestation does not matter: what is named is looked at.
 */
const MAINTAINED = ['client_status', 'key_storage_status'] as const;

/**
 * The status entries that a wallet or key attestation names: `status` (OpenID4VCI 1.0 appendices D.1 and E),
 * `client_status.status` and `key_storage_status.status`.
 * @returns none for an attestation that cannot be revoked.
 * @throws Refusal `status_invalid` for one that is named in a way nobody can check, or that is kept no longer.
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
  // TS3 1.5 section 2.4.1: from then on the entry says nothing.
  if (exp * 1000 <= now.getTime()) throw new Refusal('status_invalid', 'exp has passed');
  return { place, reference, keptUntil: exp };
}

/** Names the member in the reason. */
function within<T>(place: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new Refusal(error.reason, `${place}: ${error.message.slice(error.reason.length + 2)}`);
  }
}
