import { isCompromised, type KeyChain, selectKeyChain } from '../keys/key-chain.ts';
import type { JsonObject } from '../shared/json.ts';
import type { TrustListConfiguration } from './list-configuration.ts';

export type PublishedList = TrustListConfiguration & {
  /** The key chain that signed the version. */
  readonly signedBy: string;
  /** Starts at 1, is incremented with every write and every signature, and is never reused. */
  readonly sequenceNumber: number;
  /** The published version, compact. */
  readonly jwt: string;
  /** End of the version. */
  readonly nextUpdate: Date;
  readonly createdAt: Date;
  /** Creation of the version. */
  readonly updatedAt: Date;
};

export type ListVersion = { readonly id: string; readonly list: PublishedList };

export const MAX_LISTS = 50;
/** Limit of stored versions per list; the oldest are deleted. */
export const MAX_VERSIONS = 50;

const DAY_MS = 24 * 60 * 60 * 1000;
const VALID_MS = 30 * DAY_MS;
/** A version is renewed after two thirds of its lifetime. */
export const RENEW_BEFORE_MS = VALID_MS / 3;

export type Signer = { readonly chain: KeyChain; readonly nextUpdate: Date };

/**
 * The signer of a list version, and its end, which does not exceed the signer's certificate. Unless a key chain is configured, one that
 * remains valid long enough is preferred.
 * @throws Failure like `selectKeyChain`.
 */
export function selectListSigner(chains: readonly KeyChain[], now: Date, requestedId: string | undefined): Signer {
  const end = now.getTime() + VALID_MS;
  const longValid = chains.filter(
    (chain) => chain.usages.includes('trustList') && !isCompromised(chain) && chain.active.notAfter.getTime() >= end,
  );
  const candidates = requestedId === undefined && longValid.length > 0 ? longValid : chains;
  const chain = selectKeyChain(candidates, 'trustList', now, requestedId);
  const endMs = Math.min(end, chain.active.notAfter.getTime());
  return { chain, nextUpdate: new Date(Math.floor(endMs / 1000) * 1000) };
}

export function documentOf({ jwt }: Pick<PublishedList, 'jwt'>): JsonObject {
  const [, payload = ''] = jwt.split('.', 2);
  return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as JsonObject;
}
