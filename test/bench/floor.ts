import { createECDH, createPublicKey, generateKeyPairSync, hash, type JsonWebKey, randomBytes, sign, verify } from 'node:crypto';

/** CPU milliseconds that one operation costs on one thread. */
export type CryptoCosts = {
  /** P-256 in the form of the machine of reference, by which machines are compared; see `REFERENCE`. */
  readonly reference: { readonly signMs: number; readonly verifyMs: number };
  /** In the fastest form of Node: a raw key, and signatures in DER. */
  readonly signMs: number;
  /** With an already imported key. */
  readonly verifyMs: number;
  readonly importMs: number;
  /** A fresh key pair for encryption. */
  readonly generateMs: number;
  readonly agreeMs: number;
  readonly hashMs: number;
};

const ROUNDS = 5;
const ROUND_MS = 60;

/**
 * Measures the minimal costs of any implementation in this runtime, in CPU time, so that other processes disturb little.
 */
export function measureCryptoCosts(): CryptoCosts {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const message = randomBytes(600);
  const signature = sign('sha256', message, privateKey);
  const jwks = Array.from({ length: 64 }, strangersKey);
  const peer = createECDH('prime256v1').generateKeys();
  const ownKey = createECDH('prime256v1');
  ownKey.generateKeys();
  const disclosure = randomBytes(60).toString('base64url');
  let turn = 0;
  return {
    reference: measureReference(),
    signMs: cost(() => sign('sha256', message, privateKey)),
    verifyMs: cost(() => verify('sha256', message, publicKey, signature)),
    importMs: cost(() => createPublicKey({ key: jwks[turn++ % jwks.length] ?? {}, format: 'jwk' })),
    generateMs: cost(() => createECDH('prime256v1').generateKeys()),
    agreeMs: cost(() => ownKey.computeSecret(peer)),
    hashMs: cost(() => hash('sha256', disclosure, 'base64url')),
  };
}

/**
 * P-256 as the reference was measured. Node is slower in this form than with the bare key: it makes a new context from the
 * options each time. It stays as it is, so that goals mean the same on every machine and in every release.
 */
export function measureReference(roundMs = ROUND_MS): CryptoCosts['reference'] {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const message = randomBytes(600);
  const options = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
  const signature = sign('sha256', message, options);
  const verification = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
  return {
    signMs: cost(() => sign('sha256', message, options), roundMs),
    verifyMs: cost(() => verify('sha256', message, verification, signature), roundMs),
  };
}

/** Machine of reference: CPU milliseconds of one signature and one verification with P-256. */
export const REFERENCE = { signMs: 0.049, verifyMs: 0.091 } as const;

/** Slowness of this machine relative to the reference machine. */
export function relativeSlowness({ reference }: Pick<CryptoCosts, 'reference'>): number {
  return (reference.signMs + reference.verifyMs) / (REFERENCE.signMs + REFERENCE.verifyMs);
}

/** Measures the present slowness in a fifth of a second. */
export function slownessNow(): number {
  return relativeSlowness({ reference: measureReference(20) });
}

export function averageCosts(allCosts: readonly CryptoCosts[]): CryptoCosts {
  const mean = (costOf: (costs: CryptoCosts) => number) =>
    allCosts.reduce((sum, costs) => sum + costOf(costs), 0) / Math.max(1, allCosts.length);
  return {
    reference: { signMs: mean(({ reference }) => reference.signMs), verifyMs: mean(({ reference }) => reference.verifyMs) },
    signMs: mean(({ signMs }) => signMs),
    verifyMs: mean(({ verifyMs }) => verifyMs),
    importMs: mean(({ importMs }) => importMs),
    generateMs: mean(({ generateMs }) => generateMs),
    agreeMs: mean(({ agreeMs }) => agreeMs),
    hashMs: mean(({ hashMs }) => hashMs),
  };
}

function strangersKey(): JsonWebKey {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
}

/** The median of several rounds. */
function cost(operation: () => unknown, roundMs = ROUND_MS): number {
  for (let i = 0; i < 200; i++) operation();
  const rounds = Array.from({ length: ROUNDS }, () => measureRound(operation, roundMs)).sort((first, second) => first - second);
  return rounds[Math.floor(ROUNDS / 2)] ?? 0;
}

function measureRound(operation: () => unknown, roundMs: number): number {
  const startedAt = performance.now();
  const cpuBefore = process.threadCpuUsage();
  let count = 0;
  while (performance.now() - startedAt < roundMs) {
    for (let i = 0; i < 20; i++) operation();
    count += 20;
  }
  const { user, system } = process.threadCpuUsage(cpuBefore);
  return (user + system) / 1000 / count;
}
