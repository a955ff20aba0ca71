import { parseCertificate } from '../formats/der/certificate.ts';
import { defined } from '../shared/defined.ts';
import { Failure, invalidInput } from '../shared/failure.ts';
import { LONGEST_LIFETIME_SECONDS } from '../shared/token-lifetime.ts';
import { leafValidity } from './certificate-profile.ts';
import { type FormerLeaf, isCompromised, type KeyChain, type KeyLeaf, type KeyRoot } from './key-chain.ts';
import { isSelfSigned } from './self-signed.ts';
import { isSameHandle } from './signing-key.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Leaves that one key chain keeps besides the present one. */
export const MAX_FORMER_LEAVES = 32;
/** Rotations by interval leave room for some on demand. */
const MAX_BY_INTERVAL = 24;
/** A certificate is renewed so long before it ends, or at two thirds of its time if that is later. */
const RENEWAL_DAYS = 30;
/** Somebody has to see to a certificate from outside so long before it ends. */
const REMINDER_DAYS = 7;

export const DEFAULT_ROTATION_DAYS = 90;

export type RotationSettings = Pick<KeyChain, 'rotationEnabled' | 'rotationIntervalDays' | 'certValidityDays'>;

/**
 * A key is kept until its certificate has ended, so fast rotation under long certificates would pile up keys.
 * @throws Failure `invalid_input`.
 */
export function assertRotationFits(settings: RotationSettings): void {
  const { rotationEnabled, rotationIntervalDays, certValidityDays } = settings;
  if (!rotationEnabled || certValidityDays <= rotationIntervalDays * MAX_BY_INTERVAL) return;
  throw invalidInput(
    'rotationIntervalDays',
    `Former keys are kept until their certificates end, ${MAX_BY_INTERVAL} of them at most. Rotate every ` +
      `${Math.ceil(certValidityDays / MAX_BY_INTERVAL)} days or more seldom, or give certValidityDays of ` +
      `${rotationIntervalDays * MAX_BY_INTERVAL} or less.`,
  );
}

/**
 * What can happen to the leaf that signs. The one before it becomes a former leaf, which signs nothing any more and goes
 * when nothing rests on it; no former leaf ever signs again.
 */
export const LEAF_STEPS = {
  rotation: { key: 'another', certifiedBy: 'root' },
  renewal: { key: 'same', certifiedBy: 'root' },
  /** Certificates from outside: the internal CA has no part in the key chain from then on. */
  upload: { key: 'same', certifiedBy: 'others' },
} as const satisfies Record<string, { readonly key: 'same' | 'another'; readonly certifiedBy: 'root' | 'others' }>;
export type LeafStep = keyof typeof LEAF_STEPS;

/** What a key chain takes by itself when its time has come. */
export type DueStep = Exclude<LeafStep, 'upload'>;

/** The step that a key chain needs to go on; undefined: none yet. */
export function dueStep(chain: KeyChain, now: Date): DueStep | undefined {
  if (now.getTime() >= rotationTime(chain)) return 'rotation';
  if (isCompromised(chain)) return 'rotation';
  if (isCertifiedByOldProfile(chain, now)) return 'renewal';
  return now.getTime() >= renewalTime(chain) ? 'renewal' : undefined;
}

/**
 * Until when a key chain needs nothing unless its configuration changes, in milliseconds since 1970.
 * @returns a time that is over when a step is due, or a former leaf can go.
 */
export function idleUntil(chain: KeyChain, now: Date): number {
  if (dueStep(chain, now) !== undefined) return now.getTime();
  const formerEnds = (chain.former ?? []).map(({ keptUntil }) => keptUntil.getTime());
  const until = Math.min(rotationTime(chain), renewalTime(chain), ...formerEnds);
  // A time that is none is a fault that somebody has to see.
  return Number.isNaN(until) ? now.getTime() : until;
}

/** In milliseconds since 1970; never, where keys are rotated on demand only. */
function rotationTime({ rotationEnabled, rotationIntervalDays, lastRotatedAt, createdAt }: KeyChain): number {
  const since = (lastRotatedAt ?? createdAt).getTime();
  return rotationEnabled ? since + rotationIntervalDays * DAY_MS : Number.POSITIVE_INFINITY;
}

function renewalTime({ root, certValidityDays, active }: KeyChain): number {
  const days = root === undefined ? REMINDER_DAYS : Math.min(RENEWAL_DAYS, certValidityDays / 3);
  return active.notAfter.getTime() - days * DAY_MS;
}

/**
 * Whether the internal CA certified the active leaf with basic constraints, as release 0.1.0 did, and can certify it
 * again. Some mdoc readers and wallets reject critical basic constraints in an end-entity certificate.
 */
export function isCertifiedByOldProfile(chain: KeyChain, now: Date): boolean {
  const { root, usages, active } = chain;
  if (root === undefined || root.notAfter <= now) return false;
  if (!usages.includes('signing') && !usages.includes('access')) return false;
  if (countedFormerLeaves(chain, now).length >= MAX_FORMER_LEAVES) return false;
  return [active.certificates[0], active.documentSigner?.[0]].some(
    (certificate) => certificate !== undefined && parseCertificate(Buffer.from(certificate, 'base64'))?.basicConstraints?.critical === true,
  );
}

/**
 * Whether the internal CA can certify another leaf.
 * @returns the CA.
 * @throws Failure `conflict` when there is none, it has ended, or as many leaves as can be kept still count.
 */
export function assertRenewable(chain: KeyChain, now: Date): KeyRoot {
  const { root } = chain;
  if (root === undefined) {
    if (isSelfSigned(chain.active)) {
      throw new Failure(
        'conflict',
        `the key chain ${chain.id} certifies itself, so another key would be another signer: make another key chain, ` +
          'and let readers know its certificate',
      );
    }
    throw new Failure(
      'conflict',
      `the certificates of the key chain ${chain.id} come from outside, so it cannot be rotated here: ask for a ` +
        'certificate with POST /key-chain/{id}/csr and upload it, or do so for a key chain that is new',
    );
  }
  if (root.notAfter <= now) throw new Failure('conflict', `the authority of the key chain ${chain.id} has ended; create another one`);
  assertRoom(chain, now);
  return root;
}

/** Whether a leaf made now would last longer than the present one, which ends with its CA at the latest. */
export function isExtendable({ active, certValidityDays }: KeyChain, root: KeyRoot, now: Date): boolean {
  return leafValidity(now, certValidityDays, root.notAfter).notAfter > active.notAfter;
}

/**
 * Puts another leaf in the place of the present one, which is kept while anything counts that it signed: its
 * credentials, lists and requests end with its certificate at the latest, its access tokens a little later.
 * @throws Failure `conflict` when as many leaves as can be kept still count. None of them is dropped for a new one.
 * @throws Error for a leaf with another key than the step allows.
 */
export function replaceLeaf(chain: KeyChain, step: LeafStep, active: KeyLeaf, now: Date): KeyChain {
  const { key, certifiedBy } = LEAF_STEPS[step];
  const isSame = isSameHandle(active.key.handle, chain.active.key.handle);
  if (isSame !== (key === 'same')) throw new Error(`a ${step} takes ${key === 'same' ? 'the same' : 'another'} key`);
  const former = [formerLeaf(chain, now), ...assertRoom(chain, now)];
  const { root, ...rest } = chain;
  return {
    ...rest,
    ...(certifiedBy === 'root' && defined({ root })),
    ...(key === 'another' && { lastRotatedAt: now }),
    active,
    former,
    updatedAt: now,
  };
}

/** @returns the key chain without the leaves that count no more, or undefined when all of them do. */
export function withoutEnded({ former = [], ...chain }: KeyChain, now: Date): KeyChain | undefined {
  const kept = former.filter((leaf) => leaf.keptUntil > now);
  if (kept.length === former.length) return undefined;
  return { ...chain, ...(kept.length > 0 && { former: kept }), updatedAt: now };
}

function formerLeaf({ active, root }: KeyChain, now: Date): FormerLeaf {
  const lastToken = new Date(now.getTime() + LONGEST_LIFETIME_SECONDS * 1000);
  const keptUntil = active.notAfter > lastToken ? active.notAfter : lastToken;
  return { ...active, ...(root !== undefined && { root: root.certificate }), keptUntil };
}

/** @returns the former leaves that still count. */
function assertRoom(chain: KeyChain, now: Date): readonly FormerLeaf[] {
  const { id } = chain;
  const kept = countedFormerLeaves(chain, now);
  if (kept.length < MAX_FORMER_LEAVES) return kept;
  const first = Math.min(...kept.map(({ keptUntil }) => keptUntil.getTime()));
  throw new Failure(
    'conflict',
    `the key chain ${id} has ${MAX_FORMER_LEAVES} former keys that something still rests on; the next rotation is ` +
      `possible after ${new Date(first).toISOString()}, or create another key chain`,
  );
}

function countedFormerLeaves({ former = [] }: KeyChain, now: Date): readonly FormerLeaf[] {
  return former.filter((leaf) => leaf.keptUntil > now);
}
