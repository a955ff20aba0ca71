import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Cryptoki, Handle } from '../../adapters/kms/pkcs11/cryptoki.ts';
import { Pkcs11Kms } from '../../adapters/kms/pkcs11/pkcs11-kms.ts';
import { NodeRandom } from '../../adapters/system/random.ts';
import { type StoredKey, signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { failing, isSignedBy } from '../contract/kms-provider.suite.ts';

const UTILITY = 'softhsm2-util';
const LIBRARIES = [
  '/usr/lib/softhsm/libsofthsm2.so',
  '/usr/lib64/softhsm/libsofthsm2.so',
  '/usr/lib64/pkcs11/libsofthsm2.so',
  '/usr/local/lib/softhsm/libsofthsm2.so',
  '/opt/homebrew/lib/softhsm/libsofthsm2.so',
];
const SO_PIN = 'so-of-the-tests';
const VARIABLE = 'SOFTHSM2_CONF';

export const PIN = 'pin-that-nobody-sees';

/** Functions of the library for direct access to a token. */
export type TokenAccess = Cryptoki & {
  C_CloseAllSessions(slot: Handle): void;
  C_Logout(session: Handle): void;
  C_SetPIN(session: Handle, oldPin: string, newPin: string): void;
};

type Settings = Parameters<typeof Pkcs11Kms.open>[0]['settings'];

/**
 * Whether SoftHSM and pkcs11js are installed. Otherwise one line tells what is skipped, or it throws when no test may be
 * skipped.
 */
export function hasSoftHsm(): boolean {
  const missing = findMissing();
  if (missing === undefined) return true;
  if (process.env['CI'] === 'true') throw new Error(`install what the tests of HSMs need: ${missing}`);
  console.log(`    skipped: keys in an HSM (needs ${missing})`);
  return false;
}

function findMissing(): string | undefined {
  try {
    createRequire(import.meta.url).resolve('pkcs11js');
  } catch {
    return 'pkcs11js: npm i --no-save pkcs11js';
  }
  try {
    execFileSync(UTILITY, ['--version'], { stdio: 'ignore' });
  } catch {
    return `${UTILITY}: the package softhsm2`;
  }
  return LIBRARIES.some((file) => existsSync(file)) ? undefined : 'libsofthsm2.so: the package softhsm2';
}

/**
 * Tokens of SoftHSM in a separate folder. The library is shared by the whole process and reads its configuration at
 * initialization, so only one instance can exist at a time.
 */
export class SoftHsm {
  readonly library = LIBRARIES.find((file) => existsSync(file)) ?? '';
  readonly folder = mkdtempSync(join(tmpdir(), 'vidimus-hsm-'));
  /** The tokens, as folders with a file for each object. */
  readonly tokens = join(this.folder, 'tokens');
  readonly #before = process.env[VARIABLE];
  readonly #opened: Pkcs11Kms[] = [];

  /** @param mechanisms mechanisms of its tokens, such as `CKM_ECDSA`; all of the library by default. */
  constructor(mechanisms?: readonly string[]) {
    mkdirSync(this.tokens);
    const configuration = join(this.folder, 'softhsm2.conf');
    const lines = [`directories.tokendir = ${this.tokens}`, 'log.level = ERROR'];
    if (mechanisms !== undefined) lines.push(`slots.mechanisms = ${mechanisms.join(',')}`);
    writeFileSync(configuration, `${lines.join('\n')}\n`);
    process.env[VARIABLE] = configuration;
  }

  addToken(label: string, pin = PIN): void {
    const pins = ['--pin', pin, '--so-pin', SO_PIN];
    execFileSync(UTILITY, ['--init-token', '--free', '--label', label, ...pins], { stdio: 'ignore' });
  }

  /** Opens a provider, which `stop` closes at the latest. */
  async open(name: string, token: string, settings: Partial<Settings> = {}): Promise<Pkcs11Kms> {
    const defaultSettings = { library: this.library, token, pin: PIN, sessions: 4, timeoutSeconds: 5 };
    const kms = await Pkcs11Kms.open({ name, settings: { ...defaultSettings, ...settings }, random: new NodeRandom() });
    this.#opened.push(kms);
    return kms;
  }

  /** Direct access to the library in this process; a provider must be open. */
  cryptoki(): TokenAccess {
    const { PKCS11 } = createRequire(import.meta.url)('pkcs11js') as { PKCS11: new (library: string) => TokenAccess };
    return new PKCS11(this.library);
  }

  /** Runs work in an additional session on a token, next to those of the logged-in providers. */
  withSession<T>(token: string, work: (other: TokenAccess, session: Handle, slot: Handle) => T): T {
    const other = this.cryptoki();
    const slot = other.C_GetSlotList(true).find((each) => other.C_GetTokenInfo(each).label.trim() === token);
    if (slot === undefined) throw new Error(`there is no token ${token}`);
    const session = other.C_OpenSession(slot, 6);
    try {
      return work(other, session, slot);
    } finally {
      try {
        other.C_CloseSession(session);
      } catch {
        // The test closed it with all the others.
      }
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#opened.map((kms) => kms.close()));
    if (this.#before === undefined) delete process.env[VARIABLE];
    else process.env[VARIABLE] = this.#before;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The key of `acme` signs what its public half verifies. */
export async function expectValidSignature(kms: Pkcs11Kms, key: StoredKey): Promise<void> {
  const signature = await kms.sign(signingKey('acme', key), 'data');
  expect(isSignedBy(key.publicJwk, 'data', signature)).to.equal(true);
}

/** The logged reason of a call that fails as `unavailable`. */
export async function unavailableReason(work: () => Promise<unknown>): Promise<string> {
  const error = await failing(work);
  expect(error).to.be.instanceOf(Failure).with.property('code', 'unavailable');
  return ((error as Failure).cause as Error).message;
}

export async function errorMessage(work: () => Promise<unknown>): Promise<string | undefined> {
  return ((await failing(work)) as Error | undefined)?.message;
}

export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
}
