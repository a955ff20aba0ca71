import { expect } from 'chai';
import { ThreadedXmlDocuments } from '../../adapters/xml/threaded-xml-documents.ts';
import { gatherAnchors } from '../../application/trust-lists/listed-anchors.ts';
import { signersOf } from '../../application/trust-lists/verify-trust-list.ts';
import { credentialIssuers } from '../../domain/trust-lists/select-certificates.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { type Certified, certify } from '../support/test-certificates.ts';
import { signXml, type XmlService, xmlList } from '../support/xml-list.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const TYPE = 'http://uri.etsi.org/TrstSvc/Svctype';
const MEBIBYTE = 1024 * 1024;
/** Of services that issue attestations, among all others. */
const EVERY = 10;

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

describe('Large trusted lists in XML', function () {
  this.timeout(180_000);
  let operator: Certified;
  let large: Buffer;
  let listed: number;

  const listOf = (bytes: number) => {
    const service = (index: number): XmlService => ({
      type: index % EVERY === 0 ? `${TYPE}/EAA/Q` : `${TYPE}/CA/QC`,
      certificates: [operator.certificate, operator.certificate],
    });
    const size = xmlList({ services: [service(1)] }).length - xmlList().length;
    const services = Array.from({ length: Math.ceil(bytes / size) }, (_, index) => service(index));
    listed = Math.ceil(services.length / EVERY);
    return Buffer.from(signXml(xmlList({ services }), operator));
  };
  const fault = (
    text: Buffer,
    documents: ThreadedXmlDocuments,
    signers = [operator.certificate],
    owner = 'acme',
  ) =>
    documents.trustedList(text, signers, NOW, owner).then(
      () => 'taken',
      (error: unknown) => {
        if (error instanceof TrustListRefusal) return error.message;
        throw error;
      },
    );

  before(async () => {
    operator = await certify({ name: 'Operator' });
    large = listOf(10 * MEBIBYTE);
  });

  it('are read by another thread: this one never waits for 50 milliseconds', async () => {
    expect(large.length).to.be.greaterThan(10 * MEBIBYTE);
    const documents = new ThreadedXmlDocuments();
    const holds = new Holds();
    const { list } = await documents.trustedList(large, [operator.certificate], NOW, 'acme');
    const source = { uri: 'https://lists.example', signers: signersOf([]), purpose: credentialIssuers() };
    const anchors = gatherAnchors([{ source, list }]);
    const longest = holds.end();
    expect([...anchors.values()][0]?.listings).to.have.length(2 * listed);
    const services = list.entities.flatMap((entity) => entity.services);
    expect(services).to.have.length(listed);
    expect(services[0]).to.deep.include({ since: new Date('2026-01-01T00:00:00Z'), type: `${TYPE}/EAA/Q` });
    expect(longest, 'ms').to.be.lessThan(50);
  });

  it('are refused there for the same reasons', async () => {
    const documents = new ThreadedXmlDocuments();
    const some = listOf(0.5 * MEBIBYTE);
    const stranger = await certify({ name: 'Stranger' });
    const changed = Buffer.from(some.toString().replace('SequenceNumber>1<', 'SequenceNumber>2<'));
    expect(
      await Promise.all([
        fault(some, documents),
        fault(some, documents, [stranger.certificate]),
        fault(changed, documents),
      ]),
    ).to.deep.equal(['taken', 'untrusted_signer: none of the pinned ones', 'signature']);
  });

  it('are refused that take longer, more memory, or are larger than a list may be', async () => {
    const hasty = new ThreadedXmlDocuments({ milliseconds: 200 });
    const start = performance.now();
    expect(await fault(large, hasty)).to.equal('malformed: it takes longer than 0.2 seconds to read');
    expect(performance.now() - start).to.be.lessThan(5_000);
    const small = new ThreadedXmlDocuments({ megabytes: 24 });
    expect(await fault(large, small)).to.equal('malformed: it takes too much memory to read');
    const documents = new ThreadedXmlDocuments();
    const huge = Buffer.alloc(50 * MEBIBYTE, '<a>');
    expect(await fault(huge, documents)).to.equal('malformed: lists in XML are read up to 16 MiB');
    expect(await fault(listOf(0.3 * MEBIBYTE), documents), 'the next one').to.equal('taken');
  });

  it('wait for each other, and not without end', async () => {
    const documents = new ThreadedXmlDocuments({ milliseconds: 1 });
    const text = large.subarray(0, 300_000);
    const refused = async (owners: readonly string[]) =>
      (await Promise.all(owners.map((owner) => fault(text, documents, undefined, owner)))).filter((each) =>
        /too many large lists wait/.test(each),
      ).length;
    // One is read at once.
    expect(await refused(Array.from({ length: 20 }, () => 'acme')), 'of one tenant').to.equal(3);
    expect(await refused(Array.from({ length: 70 }, (_, at) => `tenant-${at % 10}`)), 'of all').to.equal(5);
  });

  it('wait in so many bytes, and who has nothing waiting finds a place where others hold all of it', async () => {
    const documents = new ThreadedXmlDocuments({ milliseconds: 1 });
    const text = Buffer.alloc(15 * MEBIBYTE, ' ');
    const results = new Map<string, string[]>();
    const read = async (owner: string) => {
      const result = await fault(text, documents, undefined, owner);
      results.set(owner, [...(results.get(owner) ?? []), result]);
    };
    const waits = (owner: string) =>
      (results.get(owner) ?? []).filter((each) => /too many large lists wait/.test(each)).length;
    // One is read at once; two of each are 30 MiB.
    const greedy = ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'c', 'c', 'd', 'd'].map(read);
    await Promise.all([...greedy, read('late'), read('later')]);
    expect(['a', 'b', 'c', 'd'].reduce((sum, owner) => sum + waits(owner), 0)).to.equal(4);
    expect([waits('a'), waits('b')].every((count) => count >= 1)).to.equal(true);
    expect([waits('late'), waits('later')]).to.deep.equal([0, 0]);
  });

  it('of one tenant keep no other waiting for all of them', async () => {
    const documents = new ThreadedXmlDocuments();
    const some = listOf(0.3 * MEBIBYTE);
    const order: string[] = [];
    const read = (owner: string) => fault(some, documents, undefined, owner).then(() => order.push(owner));
    await Promise.all([read('greedy'), read('greedy'), read('greedy'), read('greedy'), read('other')]);
    expect(order.indexOf('other')).to.be.lessThan(3);
  });
});
