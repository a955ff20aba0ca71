import * as childProcess from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { ThreadedXmlDocuments } from '../../adapters/xml/threaded-xml-documents.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { bareEnvironment } from '../support/compile-cache.ts';
import type { LargeListAssignment, LargeListRead } from '../support/large-list-child.ts';
import { type Certified, certify } from '../support/test-certificates.ts';
import { signXml, type XmlService, xmlList } from '../support/xml-list.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const TYPE = 'http://uri.etsi.org/TrstSvc/Svctype';
const MEBIBYTE = 1024 * 1024;
/** Of services that issue attestations, among all others. */
const EVERY = 10;
const CHILD = fileURLToPath(new URL('../support/large-list-child.ts', import.meta.url));
const execFile = promisify(childProcess.execFile);

describe('Large trusted lists in XML', () => {
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
    const folder = mkdtempSync(join(tmpdir(), 'vidimus-list-'));
    try {
      const file = join(folder, 'list.xml');
      writeFileSync(file, large);
      const asked: LargeListAssignment = { file, signer: operator.certificate, now: NOW.toISOString() };
      const { stdout } = await execFile(process.execPath, [CHILD, JSON.stringify(asked)], {
        env: bareEnvironment(),
        maxBuffer: 64 * MEBIBYTE,
      });
      const { longest, listings, services }: LargeListRead = JSON.parse(stdout);
      expect(listings).to.equal(2 * listed);
      expect(services).to.have.length(listed);
      expect(services[0]).to.deep.include({ since: '2026-01-01T00:00:00.000Z', type: `${TYPE}/EAA/Q` });
      expect(longest, 'ms').to.be.lessThan(50);
    } finally {
      rmSync(folder, { recursive: true });
    }
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
