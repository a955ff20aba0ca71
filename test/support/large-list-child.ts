import { readFileSync } from 'node:fs';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { anchorOf, gatherAnchors } from '../../application/trust-lists/listed-anchors.ts';
import { signersOf } from '../../application/trust-lists/verify-trust-list.ts';
import { threadedTrustLists } from '../../bootstrap/trust-list-reader.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { credentialIssuers } from '../../domain/trust-lists/select-certificates.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';

export type LargeListAssignment = {
  readonly file: string;
  /** Certificate, DER in standard base64. */
  readonly signer: string;
  readonly now: string;
};

/** What came of it, on standard output. */
export type LargeListRead = {
  /** Why the list was rejected. */
  readonly refusal: string | undefined;
  /** Milliseconds that the main thread computed at a stretch, at most. */
  readonly longest: number;
  /** Resident memory above that before the list, MiB, at most. */
  readonly peak: number;
  readonly anchors: number;
  readonly listings: number;
  readonly services: number;
  readonly firstService: unknown;
};

/** What this thread computes between two moments in which others had their turn; neighbours on the machine do not count. */
class Holds {
  readonly #timer = setInterval(() => this.#look(), 1);
  #last = Holds.#now();
  longest = 0;

  static #now(): number {
    process.cpuUsage();
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  }

  #look(): void {
    const now = Holds.#now();
    this.longest = Math.max(this.longest, now - this.#last);
    this.#last = now;
  }

  end(): number {
    this.#look();
    clearInterval(this.#timer);
    return this.longest;
  }
}

/** A process of its own: where tests ran before, garbage of theirs is collected in between, which takes as long as there is of it. */
const { file, signer, now: date }: LargeListAssignment = JSON.parse(process.argv[2] ?? '');
const now = new Date(date);
const certificates = new NodeCertificates();
const lists = threadedTrustLists({ signatures: new NodeSignatures(), certificates });
const text = readFileSync(file);
const memoryBefore = process.memoryUsage.rss();
let peak = memoryBefore;
const memory = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 2);
const holds = new Holds();
const signers = signersOf([signer]);
const opened = await lists
  .open(text, { signers: signers.anchors, now, tenantId: 'acme' as TenantId })
  .catch((error: unknown) => {
    if (error instanceof TrustListRefusal) return error.message;
    throw error;
  });
const list = typeof opened === 'string' ? undefined : opened.list;
const source = { uri: 'https://lists.example', signers: signersOf([]), purpose: credentialIssuers() };
const gathered = list === undefined ? [] : [...(await gatherAnchors([{ source, list }])).values()];
// The first path that is validated has all anchors put in order.
certificates.validate([signer], gathered.map(anchorOf), now, { purpose: 'SD-JWT VC' });
const services = list?.entities.flatMap((entity) => entity.services) ?? [];
const read: LargeListRead = {
  refusal: typeof opened === 'string' ? opened : undefined,
  longest: holds.end(),
  peak: Math.round((peak - memoryBefore) / 1024 / 1024),
  anchors: gathered.length,
  listings: gathered[0]?.listings.length ?? 0,
  services: services.length,
  firstService: services[0],
};
clearInterval(memory);
process.stdout.write(JSON.stringify(read), () => process.exit(0));
