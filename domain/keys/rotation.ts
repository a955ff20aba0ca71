import { parseCertificate } from '../formats/der/certificate.ts';
import { defined } from '../shared/defined.ts';
import { Failure, invalidInput } from '../shared/failure.ts';
import { LONGEST_LIFETIME_SECONDS } from '../shared/token-lifetime.ts';
import { leafValidity } from './certificate-profile.ts';
import { isCompromised, type KeyChain, type KeyLeaf, type KeyRoot, type PreviousLeaf } from './key-chain.ts';
import { isSelfSigned } from './self-signed.ts';
import { isSameHandle } from './signing-key.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
export const MAX_PREVIOUS_LEAVES = 32;
/** Limit for rotations by interval, so that rotations on demand remain possible. */
const MAX_INTERVAL_ROTATIONS = 24;
/** A certificate is renewed this long before its end, or after two thirds of its lifetime if that is later. */
const RENEWAL_DAYS = 30;
/** Time before the end of an imported certificate at which operators are reminded. */
const REMINDER_DAYS = 7;

export const DEFAULT_ROTATION_DAYS = 90;

export type RotationSettings = Pick<KeyChain, 'rotationEnabled' | 'rotationIntervalDays' | 'certValidityDays'>;

/**
 * A key is stored until its certificate ends, so frequent rotation under long-lived certificates would accumulate keys.
 * @throws Failure `invalid_input`.
 */
export function assertRotationFits(settings: RotationSettings): void {
  const { rotationEnabled, rotationIntervalDays, certValidityDays } = settings;
  if (!rotationEnabled || certValidityDays <= rotationIntervalDays * MAX_INTERVAL_ROTATIONS) return;
  throw invalidInput(
    'rotationIntervalDays',
    `Former keys are kept until their certificates expire, at most ${MAX_INTERVAL_ROTATIONS}. Rotate every ` +
      `${Math.ceil(certValidityDays / MAX_INTERVAL_ROTATIONS)} days or less often, or set certValidityDays to ` +
      `${rotationIntervalDays * MAX_INTERVAL_ROTATIONS} or less.`,
  );
}

/**
 * Transitions of the active leaf. The replaced leaf becomes a previous one, which signs nothing and is removed when nothing depends on it;
 * it never becomes active again.
 */
export const LEAF_STEPS = {
  rotation: { key: 'another', certifiedBy: 'root' },
  renewal: { key: 'same', certifiedBy: 'root' },
  /** Imported certificates: the internal CA is no longer used by the key chain. */
  upload: { key: 'same', certifiedBy: 'external-ca' },
} as const satisfies Record<string, { readonly key: 'same' | 'another'; readonly certifiedBy: 'root' | 'external-ca' }>;
export type LeafStep = keyof typeof LEAF_STEPS;

/** Steps that are performed automatically when due. */
export type AutomaticStep = Exclude<LeafStep, 'upload'>;

/** The step that is due; undefined if there is none. */
export function dueStep(chain: KeyChain, now: Date): AutomaticStep | undefined {
  if (now.getTime() >= rotationTime(chain)) return 'rotation';
  if (isCompromised(chain)) return 'rotation';
  if (isCertifiedByOldProfile(chain, now)) return 'renewal';
  return now.getTime() >= renewalTime(chain) ? 'renewal' : undefined;
}

/**
 * Time in milliseconds since 1970 until which a key chain needs no step, unless its configuration changes.
 * @returns a time in the past when a step is due, or a previous leaf can be removed.
 */
export function nextStepAt(chain: KeyChain, now: Date): number {
  if (dueStep(chain, now) !== undefined) return now.getTime();
  const previousLeafEnds = (chain.former ?? []).map(({ keptUntil }) => keptUntil.getTime());
  const nextTime = Math.min(rotationTime(chain), renewalTime(chain), ...previousLeafEnds);
  // An invalid time is reported as due, so that the error becomes visible.
  return Number.isNaN(nextTime) ? now.getTime() : nextTime;
}

/** Milliseconds since 1970; infinity if keys are rotated on demand only. */
function rotationTime({ rotationEnabled, rotationIntervalDays, lastRotatedAt, createdAt }: KeyChain): number {
  const lastRotation = (lastRotatedAt ?? createdAt).getTime();
  return rotationEnabled ? lastRotation + rotationIntervalDays * DAY_MS : Number.POSITIVE_INFINITY;
}

function renewalTime({ root, certValidityDays, active }: KeyChain): number {
  const days = root === undefined ? REMINDER_DAYS : Math.min(RENEWAL_DAYS, certValidityDays / 3);
  return active.notAfter.getTime() - days * DAY_MS;
}

/**
 * True if the internal CA certified the active leaf with basic constraints, as release 0.1.0 did, and can certify it again. Some mdoc
 * readers and wallets reject critical basic constraints in an end-entity certificate.
 */
export function isCertifiedByOldProfile(chain: KeyChain, now: Date): boolean {
  const { root, usages, active } = chain;
  if (root === undefined || root.notAfter <= now) return false;
  if (!usages.includes('signing') && !usages.includes('access')) return false;
  if (currentPreviousLeaves(chain, now).length >= MAX_PREVIOUS_LEAVES) return false;
  return [active.certificates[0], active.documentSigner?.[0]].some(
    (certificate) => certificate !== undefined && parseCertificate(Buffer.from(certificate, 'base64'))?.basicConstraints?.critical === true,
  );
}

/**
 * Asserts that the internal CA can certify another leaf.
 * @returns the CA.
 * @throws Failure `conflict` when there is none, it has expired, or the limit of previous leaves is reached.
 */
export function assertRenewable(chain: KeyChain, now: Date): KeyRoot {
  const { root } = chain;
  if (root === undefined) {
    if (isSelfSigned(chain.active)) {
      throw new Failure(
        'conflict',
        `the key chain ${chain.id} is self-signed, so another key would be another signer: create another key chain ` +
          'and publish its certificate to readers',
      );
    }
    throw new Failure(
      'conflict',
      `the certificates of the key chain ${chain.id} come from an external authority, so it cannot be rotated: request a ` +
        'certificate with POST /key-chain/{id}/csr and upload it, also for a new key chain',
    );
  }
  if (root.notAfter <= now) throw new Failure('conflict', `the authority of the key chain ${chain.id} has expired; create another one`);
  assertPreviousLeafCapacity(chain, now);
  return root;
}

/** True if a new leaf would be valid for longer than the active one, which ends with its CA at the latest. */
export function isExtendable({ active, certValidityDays }: KeyChain, root: KeyRoot, now: Date): boolean {
  return leafValidity(now, certValidityDays, root.notAfter).notAfter > active.notAfter;
}

/**
 * Replaces the active leaf. The previous one is stored while its signatures are in use: credentials, lists and requests end with its
 * certificate at the latest, access tokens slightly later.
 * @throws Failure `conflict` when the limit of previous leaves is reached. None of them is dropped for a new one.
 * @throws Error for a key that the step does not allow.
 */
export function replaceActiveLeaf(chain: KeyChain, step: LeafStep, active: KeyLeaf, now: Date): KeyChain {
  const { key, certifiedBy } = LEAF_STEPS[step];
  const isSame = isSameHandle(active.key.handle, chain.active.key.handle);
  if (isSame !== (key === 'same')) throw new Error(`a ${step} takes ${key === 'same' ? 'the same' : 'another'} key`);
  const previousLeaves = [toPreviousLeaf(chain, now), ...assertPreviousLeafCapacity(chain, now)];
  const { root, ...otherProperties } = chain;
  return {
    ...otherProperties,
    ...(certifiedBy === 'root' && defined({ root })),
    ...(key === 'another' && { lastRotatedAt: now }),
    active,
    former: previousLeaves,
    updatedAt: now,
  };
}

/** @returns the key chain without expired previous leaves, or undefined when none has expired. */
export function withoutExpiredLeaves({ former: previousLeaves = [], ...chain }: KeyChain, now: Date): KeyChain | undefined {
  const currentLeaves = previousLeaves.filter((leaf) => leaf.keptUntil > now);
  if (currentLeaves.length === previousLeaves.length) return undefined;
  return { ...chain, ...(currentLeaves.length > 0 && { former: currentLeaves }), updatedAt: now };
}

function toPreviousLeaf({ active, root }: KeyChain, now: Date): PreviousLeaf {
  const lastToken = new Date(now.getTime() + LONGEST_LIFETIME_SECONDS * 1000);
  const keptUntil = active.notAfter > lastToken ? active.notAfter : lastToken;
  return { ...active, ...(root !== undefined && { root: root.certificate }), keptUntil };
}

/** @returns the previous leaves that are still in use. */
function assertPreviousLeafCapacity(chain: KeyChain, now: Date): readonly PreviousLeaf[] {
  const { id } = chain;
  const currentLeaves = currentPreviousLeaves(chain, now);
  if (currentLeaves.length < MAX_PREVIOUS_LEAVES) return currentLeaves;
  const firstEnd = Math.min(...currentLeaves.map(({ keptUntil }) => keptUntil.getTime()));
  throw new Failure(
    'conflict',
    `the key chain ${id} has ${MAX_PREVIOUS_LEAVES} former keys that are still in use; the next rotation is ` +
      `possible after ${new Date(firstEnd).toISOString()}, or create another key chain`,
  );
}

function currentPreviousLeaves({ former: previousLeaves = [] }: KeyChain, now: Date): readonly PreviousLeaf[] {
  return previousLeaves.filter((leaf) => leaf.keptUntil > now);
}
