import { readFileSync } from 'node:fs';
import { ThreadedXmlDocuments } from '../../adapters/xml/threaded-xml-documents.ts';
import { gatherAnchors } from '../../application/trust-lists/listed-anchors.ts';
import { signersOf } from '../../application/trust-lists/verify-trust-list.ts';
import { credentialIssuers } from '../../domain/trust-lists/select-certificates.ts';

export type LargeListAssignment = {
  readonly file: string;
  /** Certificate, DER in standard base64. */
  readonly signer: string;
  readonly now: string;
};

/** What came of it, on standard output. */
export type LargeListRead = {
  /** Milliseconds that the main thread computed at a stretch, at most. */
  readonly longest: number;
  readonly listings: number;
  readonly services: readonly unknown[];
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
const { file, signer, now }: LargeListAssignment = JSON.parse(process.argv[2] ?? '');
const documents = new ThreadedXmlDocuments();
const text = readFileSync(file);
const holds = new Holds();
const { list } = await documents.trustedList(text, [signer], new Date(now), 'acme');
const source = { uri: 'https://lists.example', signers: signersOf([]), purpose: credentialIssuers() };
const anchors = gatherAnchors([{ source, list }]);
const read: LargeListRead = {
  longest: holds.end(),
  listings: [...anchors.values()][0]?.listings.length ?? 0,
  services: list.entities.flatMap((entity) => entity.services),
};
process.stdout.write(JSON.stringify(read), () => process.exit(0));
