import { readFileSync } from 'node:fs';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { anchorOf, collectAnchors } from '../../application/trust-lists/listed-anchors.ts';
import { signersOf } from '../../application/trust-lists/verify-trust-list.ts';
import { threadedTrustLists } from '../../bootstrap/wiring/trust-list-reader.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { credentialIssuers } from '../../domain/trust-lists/select-certificates.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';

export type LargeListAssignment = {
  /** Files with one list each, which are read simultaneously. */
  readonly files: readonly string[];
  /** Certificate, DER in standard base64. */
  readonly signer: string;
  readonly now: string;
};

/** The result on standard output. */
export type LargeListRead = {
  /** Reason of the first rejected list. */
  readonly refusal: string | undefined;
  readonly lists: number;
  /** Longest block of the main thread in milliseconds. */
  readonly longest: number;
  /** Peak of the additional resident memory in MiB. */
  readonly peakMebibytes: number;
  readonly anchors: number;
  readonly listings: number;
  readonly services: number;
  readonly firstService: unknown;
};

/** Measures how long this thread computes between two turns of the event loop, in processor time. */
class BlockMeter {
  readonly #timer = setInterval(() => this.#look(), 1);
  #last = BlockMeter.#now();
  longest = 0;

  static #now(): number {
    process.cpuUsage();
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  }

  #look(): void {
    const now = BlockMeter.#now();
    this.longest = Math.max(this.longest, now - this.#last);
    this.#last = now;
  }

  end(): number {
    this.#look();
    clearInterval(this.#timer);
    return this.longest;
  }
}

/** Runs as a separate process, so that garbage of earlier tests does not slow it down. */
const { files, signer, now: date }: LargeListAssignment = JSON.parse(process.argv[2] ?? '');
const now = new Date(date);
const certificates = new NodeCertificates();
// The budget of processor time would make the lists of one tenant wait for a minute.
const budget = { milliseconds: 60_000, perMs: 60_000 };
const lists = threadedTrustLists({ signatures: new NodeSignatures(), certificates }, { budget });
const texts = files.map((file) => readFileSync(file));
const memoryBefore = process.memoryUsage.rss();
let peak = memoryBefore;
const memory = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 2);
const holds = new BlockMeter();
const signers = signersOf([signer]);
const parsedLists = await Promise.all(
  texts.map((text) =>
    lists.open(text, { signers: signers.anchors, now, tenantId: 'acme' as TenantId }).catch((error: unknown) => {
      if (error instanceof TrustListRefusal) return error.message;
      throw error;
    }),
  ),
);
const source = { uri: 'https://lists.example', signers: signersOf([]), purpose: credentialIssuers() };
const acceptedLists = parsedLists.flatMap((parsedList) => (typeof parsedList === 'string' ? [] : [parsedList.list]));
const anchors = [...(await collectAnchors(acceptedLists.map((list) => ({ source, list })))).values()];
// The first path that is validated has all anchors put in order.
certificates.verifyChain([signer], anchors.map(anchorOf), now, { purpose: 'SD-JWT VC' });
const services = acceptedLists[0]?.entities.flatMap((entity) => entity.services) ?? [];
const result: LargeListRead = {
  refusal: parsedLists.find((parsedList) => typeof parsedList === 'string'),
  lists: acceptedLists.length,
  longest: holds.end(),
  peakMebibytes: Math.round((peak - memoryBefore) / 1024 / 1024),
  anchors: anchors.length,
  listings: anchors[0]?.listings.length ?? 0,
  services: services.length,
  firstService: services[0],
};
clearInterval(memory);
process.stdout.write(JSON.stringify(result), () => process.exit(0));
