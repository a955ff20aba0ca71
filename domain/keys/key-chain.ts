import { Failure, invalidInput } from '../shared/failure.ts';
import type { StoredKey } from './signing-key.ts';

/** What a key chain may sign: requests to wallets, credentials, trust lists, status lists. */
export const KEY_USAGES = ['access', 'signing', 'trustList', 'statusList'] as const;
export type KeyUsage = (typeof KEY_USAGES)[number];

/** The tenant's own certification authority for one key chain. */
export type KeyRoot = {
  readonly key: StoredKey;
  /** Self-signed CA certificate, DER in standard base64. Relying parties are given it as their anchor. */
  readonly certificate: string;
  readonly notAfter: Date;
};

/** A key that signs messages, with what proves whose it is. */
export type KeyLeaf = {
  readonly key: StoredKey;
  /** DER in standard base64, leaf first, each certified by the next, without the root. */
  readonly certificates: readonly string[];
  /**
   * The same for a document signer, which ISO/IEC 18013-5 section B.1.4 wants certified for mdocs and nothing else.
   * Absent for a key that signs no credentials, and when the certificates came from outside.
   */
  readonly documentSigner?: readonly string[];
  /** End of the leaf certificate's validity. */
  readonly notAfter: Date;
  /** Since when the key is compromised. It then signs nothing, is published nowhere, and nothing that it signed counts. */
  readonly revokedAt?: Date;
};

/** A leaf before the present one: it signs nothing new, but what it signed is still out there. */
export type FormerLeaf = KeyLeaf & {
  /** CA certificate above it, DER in standard base64; absent when its certificates came from outside. */
  readonly root?: string;
  /** When everything that it signed has ended. */
  readonly keptUntil: Date;
};

export type KeyChain = {
  readonly id: string;
  readonly tenantId: string;
  readonly description?: string;
  /** Empty for a key that nothing is signed with yet. */
  readonly usages: readonly KeyUsage[];
  /** Name of the KMS provider where the next key of this chain is born. */
  readonly kmsProvider: string;
  /** Absent when key and certificates came from outside. */
  readonly root?: KeyRoot;
  readonly active: KeyLeaf;
  /** Newest first; see `rotation.ts` for how many, and for how long. */
  readonly former?: readonly FormerLeaf[];
  readonly rotationEnabled: boolean;
  readonly rotationIntervalDays: number;
  readonly certValidityDays: number;
  readonly lastRotatedAt?: Date;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** The leaf that signs, and those that did, newest first. */
export function leavesOf({ active, former = [] }: KeyChain): readonly KeyLeaf[] {
  return [active, ...former];
}

/** The same without those whose key is compromised. */
export function trustedLeaves(chain: KeyChain): readonly KeyLeaf[] {
  return leavesOf(chain).filter(({ revokedAt }) => revokedAt === undefined);
}

/**
 * The `x5c` of what the chain signs (RFC 7515 section 4.1.6): leaf and intermediates. HAIP 1.0 section 6.1.1 keeps
 * the trust anchor out of it.
 */
export function signingChain({ root, active }: KeyChain): readonly string[] {
  return active.certificates.filter((certificate) => certificate !== root?.certificate);
}

/** The `x5chain` of mdocs (ISO/IEC 18013-5 section 9.1.2.4), without the anchor as well. */
export function documentSignerChain({ root, active }: KeyChain): readonly string[] {
  const certificates = active.documentSigner ?? active.certificates;
  return certificates.filter((certificate) => certificate !== root?.certificate);
}

/**
 * The chain to sign with: the wanted one, else the one of this usage that was made first.
 * @throws Failure `not_found` for an id that no chain has; `invalid_input` when the chain is not for this usage,
 *   its certificate has expired, or the tenant has none.
 */
export function pickKeyChain(chains: readonly KeyChain[], usage: KeyUsage, now: Date, wantedId?: string): KeyChain {
  return wantedId === undefined ? firstUsable(chains, usage, now) : wanted(chains, usage, now, wantedId);
}

/** The chain that `pickKeyChain` returns; undefined when that throws a Failure. */
export function findKeyChain(...chosen: Parameters<typeof pickKeyChain>): KeyChain | undefined {
  try {
    return pickKeyChain(...chosen);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

function wanted(chains: readonly KeyChain[], usage: KeyUsage, now: Date, id: string): KeyChain {
  const chain = chains.find((candidate) => candidate.id === id);
  if (chain === undefined) throw new Failure('not_found', `There is no key chain "${id}".`);
  if (!chain.usages.includes(usage)) throw invalidInput('keyChainId', `The key chain "${id}" is not for the usage "${usage}".`);
  if (isCompromised(chain)) throw compromised(chain);
  if (isExpired(chain, now)) throw expired(chain);
  return chain;
}

function firstUsable(chains: readonly KeyChain[], usage: KeyUsage, now: Date): KeyChain {
  const candidates = chains
    .filter((chain) => chain.usages.includes(usage))
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1));
  const [first] = candidates;
  if (first === undefined) throw invalidInput('keyChainId', `The tenant has no key chain for the usage "${usage}". Create one first.`);
  const usable = candidates.find((chain) => !isExpired(chain, now) && !isCompromised(chain));
  if (usable === undefined) throw isCompromised(first) ? compromised(first) : expired(first);
  return usable;
}

export function isCompromised({ active }: KeyChain): boolean {
  return active.revokedAt !== undefined;
}

function compromised({ id }: KeyChain): Failure {
  return invalidInput(
    'keyChainId',
    `The key of the key chain "${id}" is compromised, so nothing is signed with it. Rotate it, or create another key chain.`,
  );
}

function isExpired(chain: KeyChain, now: Date): boolean {
  return chain.active.notAfter <= now;
}

function expired(chain: KeyChain): Failure {
  const since = chain.active.notAfter.toISOString();
  return invalidInput('keyChainId', `The certificate of the key chain "${chain.id}" expired at ${since}. Rotate it.`);
}
