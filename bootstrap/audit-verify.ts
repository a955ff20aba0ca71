import { existsSync } from 'node:fs';
import { MasterCipher } from '../adapters/crypto/cipher.ts';
import { AUDIT_LOG, OrmStore } from '../adapters/persistence/orm/orm-store.ts';
import { type Anchor, type ChainReport, VerifyAuditLog } from '../application/audit/verify-audit-log.ts';
import { readSettings, type Settings } from '../config/settings.ts';
import { SERVICE_SCOPE } from '../domain/audit/audit-entry.ts';
import { keptEnvironment } from './first-start.ts';

/**
 * `npm run audit:verify -- [--expect <chain>=<sequence>:<hash>]…`: walks the chains of the audit log and says where
 * each ends, or what is wrong with it first. Ends with 0 when all are whole, 1 when one is not or cannot be read. It
 * only reads, and the service may run meanwhile.
 */
const USAGE = 'usage: npm run audit:verify -- [--expect <chain>=<sequence>:<hash>]…';
/** No tenant can be called so. */
const SERVICE = '_service';
/** Entries after which the progress is told once more. */
const TELL_EVERY = 50_000;

const anchors = readAnchors(process.argv.slice(2));
if (anchors === undefined) {
  console.error(USAGE);
  process.exit(2);
}
try {
  process.exitCode = (await verify(readSettings(keptEnvironment(process.env)), anchors)) ? 0 : 1;
} catch (error) {
  console.error(`the audit log was not verified: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

/** @returns whether all chains are whole. */
async function verify(settings: Settings, expected: ReadonlyMap<string, Anchor>): Promise<boolean> {
  const url = settings.DATABASE_URL;
  const file = url.startsWith('sqlite:') ? url.slice('sqlite:'.length) : undefined;
  // Opening it would make it.
  if (file !== undefined && !existsSync(file)) throw new Error(`there is no database ${file}`);
  const cipher = new MasterCipher({ masterSecrets: settings.MASTER_SECRET });
  const store = await OrmStore.open({ url, poolSize: 2, migrates: false }, cipher);
  try {
    const verifyAuditLog = new VerifyAuditLog({ store, macs: cipher.macs(AUDIT_LOG) });
    let [chains, faults] = [0, 0];
    for await (const report of verifyAuditLog.execute(expected, tellProgress)) {
      chains++;
      if (report.fault !== undefined) faults++;
      console.log(describe(report));
      if (report.warning !== undefined) console.error(`${nameOf(report.scope)} WARNING ${report.warning}`);
    }
    const outcome = faults === 0 ? 'all are whole' : `${faults} of them not as the service wrote them`;
    console.error(`${chains} chains, ${outcome}`);
    return faults === 0;
  } finally {
    await store.close();
  }
}

/** The first word of a whole chain is what `--expect` takes. */
function describe({ scope, end, fault }: ChainReport): string {
  const name = nameOf(scope);
  if (fault !== undefined) return `${name} FAULT ${fault.kind} at ${fault.sequence}: ${fault.message}`;
  return end.sequence === 0 ? `${name} has no entries` : `${name}=${end.sequence}:${end.hash}`;
}

function tellProgress(scope: string, sequence: number): void {
  if (sequence % TELL_EVERY === 0) console.error(`${nameOf(scope)}: ${sequence} entries so far`);
}

function nameOf(scope: string): string {
  return scope === SERVICE_SCOPE ? SERVICE : scope;
}

/** @returns undefined when the arguments cannot be understood. */
function readAnchors(words: readonly string[]): Map<string, Anchor> | undefined {
  const found = new Map<string, Anchor>();
  for (let i = 0; i < words.length; i += 2) {
    const [, name = '', sequence, hash = ''] =
      /^([a-z0-9_-]+)=([1-9]\d{0,14}):(\S+)$/.exec(words[i + 1] ?? '') ?? [];
    if (words[i] !== '--expect' || sequence === undefined) return undefined;
    found.set(name === SERVICE ? SERVICE_SCOPE : name, { sequence: Number(sequence), hash });
  }
  return found;
}
