import type { Anchor, ChainReport } from '../../application/audit/chain-reports.ts';
import { VerifyAuditLog } from '../../application/audit/verify-audit-log.ts';
import { SERVICE_SCOPE } from '../../domain/audit/audit-entry.ts';
import { commandLine, endWithUsage } from './command-line.ts';
import { openStored } from './open-stored.ts';

/**
 * `npm run audit:verify -- [--expect <chain>=<sequence>:<hash>]…`: walks the chains of the audit log, and prints the end of each chain
 * or its first fault. The exit code is 0 when all chains are whole, and 1 when a chain is not whole or cannot be read. The command only
 * reads, and the service may run meanwhile.
 */
const USAGE = 'npm run audit:verify -- [--expect <chain>=<sequence>:<hash>]…';
/** No tenant can have this name. */
const SERVICE_CHAIN = '_service';
/** The progress is printed again after this many entries. */
const PROGRESS_EVERY = 50_000;

const { values } = commandLine(USAGE, { options: { expect: { type: 'string', multiple: true } } });
const anchors = new Map((values.expect ?? []).map(readAnchor));
try {
  process.exitCode = (await verify(anchors)) ? 0 : 1;
} catch (error) {
  console.error(`the audit log was not verified: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

/** @returns whether all chains are whole. */
async function verify(expected: ReadonlyMap<string, Anchor>): Promise<boolean> {
  const { store } = await openStored(process.env);
  try {
    const verifyAuditLog = new VerifyAuditLog({ store, macs: store.macs });
    let [chains, faults] = [0, 0];
    for await (const report of verifyAuditLog.execute(expected, printProgress)) {
      chains++;
      if (report.fault !== undefined) faults++;
      console.log(describe(report));
      if (report.warning !== undefined) console.error(`${nameOf(report.scope)} WARNING ${report.warning}`);
    }
    const outcome = faults === 0 ? 'all are intact' : `${faults} of them were tampered with`;
    console.error(`${chains} chains, ${outcome}`);
    return faults === 0;
  } finally {
    await store.close();
  }
}

/** The first word of the line of a whole chain can be passed to `--expect`. */
function describe({ scope, end, fault }: ChainReport): string {
  const name = nameOf(scope);
  if (fault !== undefined) return `${name} FAULT ${fault.kind} at ${fault.sequence}: ${fault.message}`;
  return end.sequence === 0 ? `${name} has no entries` : `${name}=${end.sequence}:${end.hash}`;
}

function printProgress(scope: string, sequence: number): void {
  if (sequence % PROGRESS_EVERY === 0) console.error(`${nameOf(scope)}: ${sequence} entries so far`);
}

function nameOf(scope: string): string {
  return scope === SERVICE_SCOPE ? SERVICE_CHAIN : scope;
}

/** Ends the process for a text that is not an anchor. */
function readAnchor(text: string): [string, Anchor] {
  const [, name = '', sequence, hash = ''] = /^([a-z0-9_-]+)=([1-9]\d{0,14}):(\S+)$/.exec(text) ?? [];
  if (sequence === undefined) return endWithUsage(USAGE, `--expect ${text}: must be <chain>=<sequence>:<hash>, as this command prints it`);
  return [name === SERVICE_CHAIN ? SERVICE_SCOPE : name, { sequence: Number(sequence), hash }];
}
