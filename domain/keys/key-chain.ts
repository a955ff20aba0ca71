import { Failure, invalidInput } from '../shared/failure.ts';
import type { StoredKey } from './signing-key.ts';

/** The signatures of a key chain: presentation requests, credentials, trust lists, status lists. */
export const KEY_USAGES = ['access', 'signing', 'trustList', 'statusList'] as const;
export type KeyUsage = (typeof KEY_USAGES)[number];

/** The tenant's internal certification authority for one key chain. */
export type KeyRoot = {
  readonly key: StoredKey;
  /** Self-signed CA certificate, DER in standard base64. Relying parties use it as their trust anchor. */
  readonly certificate: string;
  readonly notAfter: Date;
};

/** A signing key with its certificates. */
export type KeyLeaf = {
  readonly key: StoredKey;
  /** DER in standard base64, leaf first, each certified by the next, without the root. */
  readonly certificates: readonly string[];
  /**
   * The chain of the document signer, which ISO/IEC 18013-5 section B.1.4 requires to be certified for mdocs only. Absent for a key that
   * signs no credentials, and for imported certificates.
   */
  readonly documentSigner?: readonly string[];
  /** End of the leaf certificate's validity. */
  readonly notAfter: Date;
  /** Time of the compromise. The key then signs nothing and is not published, and its signatures are invalid. */
  readonly revokedAt?: Date;
};

/** A previous leaf: it signs nothing new, but its signatures are still in use. */
export type PreviousLeaf = KeyLeaf & {
  /** Its CA certificate, DER in standard base64; absent for imported certificates. */
  readonly root?: string;
  /** Time at which everything signed with it has expired. */
  readonly keptUntil: Date;
};

export type KeyChain = {
  readonly id: string;
  readonly tenantId: string;
  readonly description?: string;
  /** Empty for a key that is not used yet. */
  readonly usages: readonly KeyUsage[];
  readonly kmsProvider: string;
  /** Absent for imported keys and certificates. */
  readonly root?: KeyRoot;
  readonly active: KeyLeaf;
  /** Newest first; `rotation.ts` limits their number and lifetime. */
  readonly former?: readonly PreviousLeaf[];
  readonly rotationEnabled: boolean;
  readonly rotationIntervalDays: number;
  readonly certValidityDays: number;
  readonly lastRotatedAt?: Date;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** The active leaf and the previous ones, newest first. */
export function leavesOf({ active, former: previousLeaves = [] }: KeyChain): readonly KeyLeaf[] {
  return [active, ...previousLeaves];
}

export function trustedLeaves(chain: KeyChain): readonly KeyLeaf[] {
  return leavesOf(chain).filter(({ revokedAt }) => revokedAt === undefined);
}

/**
 * The `x5c` header for signatures of the chain (RFC 7515 section 4.1.6): leaf and intermediates. HAIP 1.0 section 6.1.1 excludes the trust
 * anchor.
 */
export function signingChain({ root, active }: KeyChain): readonly string[] {
  return active.certificates.filter((certificate) => certificate !== root?.certificate);
}

/** The `x5chain` of mdocs (ISO/IEC 18013-5 section 9.1.2.4), also without the anchor. */
export function documentSignerChain({ root, active }: KeyChain): readonly string[] {
  const certificates = active.documentSigner ?? active.certificates;
  return certificates.filter((certificate) => certificate !== root?.certificate);
}

/**
 * Selects the key chain for a signature: the given one, or the oldest one with this usage.
 * @throws Failure `not_found` for an unknown id; `invalid_input` when the chain has another usage, its certificate has expired, or the
 * tenant has none.
 */
export function selectKeyChain(chains: readonly KeyChain[], usage: KeyUsage, now: Date, requestedId?: string): KeyChain {
  return requestedId === undefined ? firstUsable(chains, usage, now) : requestedChain(chains, usage, now, requestedId);
}

/** Like `pickKeyChain`; undefined when that throws a Failure. */
export function findKeyChain(...selection: Parameters<typeof selectKeyChain>): KeyChain | undefined {
  try {
    return selectKeyChain(...selection);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

function requestedChain(chains: readonly KeyChain[], usage: KeyUsage, now: Date, id: string): KeyChain {
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
  const [oldest] = candidates;
  if (oldest === undefined) throw invalidInput('keyChainId', `The tenant has no key chain for the usage "${usage}". Create one first.`);
  const usable = candidates.find((chain) => !isExpired(chain, now) && !isCompromised(chain));
  if (usable === undefined) throw isCompromised(oldest) ? compromised(oldest) : expired(oldest);
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
  const expiredAt = chain.active.notAfter.toISOString();
  return invalidInput('keyChainId', `The certificate of the key chain "${chain.id}" expired at ${expiredAt}. Rotate it.`);
}
