import { isCompromised, type KeyChain, pickKeyChain } from '../keys/key-chain.ts';
import type { JsonObject } from '../shared/json.ts';
import type { TrustListConfiguration } from './list-configuration.ts';

/** A list of the tenant with its latest release. */
export type PublishedList = TrustListConfiguration & {
  /** The key chain that signed the release. */
  readonly signedBy: string;
  /** From 1; grows by one with every write and every signature, and never belongs to two releases. */
  readonly sequenceNumber: number;
  /** The release as it is published, compact. */
  readonly jwt: string;
  /** When the release ends. */
  readonly nextUpdate: Date;
  readonly createdAt: Date;
  /** When the release was made. */
  readonly updatedAt: Date;
};

/** A release that another one has replaced. */
export type ListVersion = { readonly id: string; readonly list: PublishedList };

/** Lists of one tenant. */
export const MAX_LISTS = 50;
/** Releases of one list that are kept; the oldest go first. */
export const MAX_VERSIONS = 50;

const DAY_MS = 24 * 60 * 60 * 1000;
const VALID_MS = 30 * DAY_MS;
/** A release is replaced while a third of its time is left. */
export const RENEW_BEFORE_MS = VALID_MS / 3;

export type Signer = { readonly chain: KeyChain; readonly nextUpdate: Date };

/**
 * Who signs a release, and until when it counts: no longer than the certificate of its signer. Without a wish one that
 * lasts is taken before one that does not.
 * @throws Failure like `pickKeyChain`.
 */
export function chooseSigner(chains: readonly KeyChain[], now: Date, wantedId: string | undefined): Signer {
  const end = now.getTime() + VALID_MS;
  const lasting = chains.filter(
    (chain) => chain.usages.includes('trustList') && !isCompromised(chain) && chain.active.notAfter.getTime() >= end,
  );
  const candidates = wantedId === undefined && lasting.length > 0 ? lasting : chains;
  const chain = pickKeyChain(candidates, 'trustList', now, wantedId);
  const until = Math.min(end, chain.active.notAfter.getTime());
  return { chain, nextUpdate: new Date(Math.floor(until / 1000) * 1000) };
}

/** What a release says. */
export function documentOf({ jwt }: Pick<PublishedList, 'jwt'>): JsonObject {
  const [, payload = ''] = jwt.split('.', 2);
  return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as JsonObject;
}
