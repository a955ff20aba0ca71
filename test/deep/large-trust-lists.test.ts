import * as childProcess from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { NodeCertificates } from '../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../adapters/crypto/signatures.ts';
import { threadedTrustLists } from '../../bootstrap/wiring/trust-list-reader.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import { minimalEnvironment } from '../support/compile-cache.ts';
import type { LargeListAssignment, LargeListRead } from '../support/large-list-child.ts';
import { type CertifiedKey, certify } from '../support/test-certificates.ts';
import { trustList } from '../support/trust-list.ts';
import { signXml, type XmlService, xmlList } from '../support/xml-list.ts';

const NOW = new Date('2026-06-01T12:00:00Z');
const TYPE = 'http://uri.etsi.org/TrstSvc/Svctype';
const MEGABYTE = 1_000_000;
/** One in this many services issues attestations. */
const ISSUER_EVERY = 10;
const MAX_PEAK_MIB = 128;
const MARK = '<tsl:TrustServiceProviderList>';
const CHILD = fileURLToPath(new URL('../support/large-list-child.ts', import.meta.url));
const execFile = promisify(childProcess.execFile);

describe('large trust lists', () => {
  let operator: CertifiedKey;
  let largeList: Buffer;
  let serviceCount: number;
  let folder: string;

  const makeXmlList = (bytes: number) => {
    const service = (index: number): XmlService => ({
      type: index % ISSUER_EVERY === 0 ? `${TYPE}/EAA/Q` : `${TYPE}/CA/QC`,
      certificates: [operator.certificate, operator.certificate],
    });
    const size = xmlList({ services: [service(1)] }).length - xmlList().length;
    const services = Array.from({ length: Math.ceil(bytes / size) }, (_, index) => service(index));
    serviceCount = Math.ceil(services.length / ISSUER_EVERY);
    return Buffer.from(signXml(xmlList({ services }), operator));
  };
  const readers = (options: Parameters<typeof threadedTrustLists>[1] = {}) =>
    threadedTrustLists({ signatures: new NodeSignatures(), certificates: new NodeCertificates() }, options);
  const outcome = (text: Buffer, lists: ReturnType<typeof readers>, signers = [operator.certificate]) =>
    lists.open(text, { signers: signers.map((certificate) => ({ certificate })), ...{ now: NOW, tenantId: 'acme' as TenantId } }).then(
      () => 'accepted',
      (error: unknown) => {
        if (error instanceof TrustListRefusal) return error.message;
        throw error;
      },
    );
  const readInChild = async (...texts: readonly Buffer[]): Promise<LargeListRead> => {
    const files = texts.map((text, index) => {
      const file = join(folder, `list-${index}`);
      writeFileSync(file, text);
      return file;
    });
    const assignment: LargeListAssignment = { files, signer: operator.certificate, now: NOW.toISOString() };
    const { stdout } = await execFile(process.execPath, [CHILD, JSON.stringify(assignment)], {
      env: minimalEnvironment(),
      maxBuffer: 64 * 1024 * 1024,
    });
    return JSON.parse(stdout);
  };

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'vidimus-list-'));
    operator = await certify({ name: 'Operator' });
    largeList = makeXmlList(10 * MEGABYTE);
  });
  after(() => rmSync(folder, { recursive: true }));

  it('in XML are parsed in a worker thread within 128 MiB, and the main thread is never blocked for 50 ms', async () => {
    const { longest, peakMebibytes: peak, listings, services, firstService } = await readInChild(largeList);
    expect(listings).to.equal(2 * serviceCount);
    expect(services).to.equal(serviceCount);
    expect(firstService).to.deep.include({ since: '2026-01-01T00:00:00.000Z', type: `${TYPE}/EAA/Q` });
    expect(longest, 'ms').to.be.lessThan(50);
    expect(peak, 'MiB').to.be.at.most(MAX_PEAK_MIB);
  });

  it('as compact JWS with a thousand certificates are parsed in the same way', async () => {
    const certificates: string[] = [];
    for (let index = 0; index < 1_000; index++) certificates.push((await certify({ name: `Issuer ${index}`, ca: true })).certificate);
    const services = certificates.map((certificate) => ({ type: 'EAA/Issuance', certificates: [certificate] }));
    const entities = [{ name: 'Issuers', services }];
    const text = Buffer.from(trustList({ entities, signer: operator }, NOW.getTime() / 1000));
    expect(text.length).to.be.greaterThan(500_000);
    const { refusal, longest, peakMebibytes: peak, anchors } = await readInChild(text);
    expect(refusal).to.equal(undefined);
    expect(anchors).to.equal(1_000);
    expect(longest, 'ms').to.be.lessThan(50);
    expect(peak, 'MiB').to.be.at.most(MAX_PEAK_MIB);
  });

  it('of 250 KiB in XML and of 1.7 MiB as JWS, twenty of each at once, are parsed within 128 MiB', async () => {
    const certificates: string[] = [];
    for (let index = 0; index < 300; index++) certificates.push((await certify({ name: `Issuer ${index}`, ca: true })).certificate);
    const services = Array.from({ length: 1_900 }, (_, index) => ({
      type: 'EAA/Issuance',
      certificates: [certificates[index % certificates.length] ?? ''],
    }));
    const compact = Buffer.from(trustList({ entities: [{ name: 'Issuers', services }], signer: operator }, NOW.getTime() / 1000));
    expect(compact.length).to.be.within(1_700_000, 2_000_000);
    const twentyLists = (text: Buffer) => Array.from({ length: 20 }, () => text);
    const {
      refusal,
      lists,
      longest,
      peakMebibytes: peak,
    } = await readInChild(...twentyLists(makeXmlList(0.25 * MEGABYTE)), ...twentyLists(compact));
    expect(refusal).to.equal(undefined);
    expect(lists).to.equal(40);
    expect(peak, 'MiB').to.be.at.most(MAX_PEAK_MIB);
    expect(longest, 'ms').to.be.lessThan(50);
  });

  it('are rejected in the worker thread for the same reasons as in the main thread', async () => {
    const lists = readers();
    const mediumList = makeXmlList(0.5 * MEGABYTE);
    const otherSigner = await certify({ name: 'Stranger' });
    const changedList = Buffer.from(mediumList.toString().replace('SequenceNumber>1<', 'SequenceNumber>2<'));
    expect(
      await Promise.all([
        outcome(mediumList, lists),
        outcome(mediumList, lists, [otherSigner.certificate]),
        outcome(changedList, lists),
        outcome(Buffer.alloc(100_000, 'a'), lists),
      ]),
    ).to.deep.equal([
      'accepted',
      'untrusted_signer: its signature contains none of the pinned certificates',
      'signature',
      'malformed: it is not a compact JWS',
    ]);
  });

  it('are rejected when they exceed the limits of time, memory or size', async () => {
    expect(await outcome(largeList, readers({ milliseconds: 20 }))).to.equal('malformed: it takes longer than 0.02 seconds to parse');
    // Parsing this list sometimes takes about 8 MB, depending on garbage collections.
    const limitedReaders = readers({ megabytes: 4 });
    expect(await outcome(largeList, limitedReaders)).to.equal('malformed: it takes too much memory to parse');
    const lists = readers();
    const hugeList = Buffer.alloc(20 * MEGABYTE, '<a>');
    expect(await outcome(hugeList, lists)).to.equal('malformed: lists in XML may have up to 16 MB');
    expect(await outcome(makeXmlList(0.3 * MEGABYTE), lists), 'the next one').to.equal('accepted');
  });

  describe('with expensive content', () => {
    const SIZE = 15.5 * MEGABYTE;
    const fill = (fragment: string, reservedBytes = 0) => fragment.repeat(Math.floor((SIZE - reservedBytes) / fragment.length));
    const wrapXml = (inner: string) => xmlList().replace(MARK, inner + MARK);
    const xmlCases: Record<string, () => string> = {
      'attributes of many elements': () => wrapXml(fill('<a b="c" d="e" f="g" h="i" j="k"/>')),
      'attributes of one element': () => wrapXml(`<a ${Array.from({ length: 1_500_000 }, (_, index) => `b${index}=""`).join(' ')}/>`),
      'one attribute': () => wrapXml(`<a b="${fill('x')}"/>`),
      'one text': () => wrapXml(`<a>${fill('x')}</a>`),
      'one text beyond Latin': () => wrapXml(`<a>${fill('x').slice(10)}€</a>`),
      'texts beyond Latin': () => wrapXml(`€${fill('<a>texttexttexttexttexttexttext</a>')}`),
      'references to characters': () => wrapXml(`<a>${fill('&#65;')}</a>`),
      'references in many texts': () => wrapXml(fill(`<a>${'&amp;'.repeat(50)}</a>`)),
      elements: () => wrapXml(fill('<a/>')),
      'elements within the limit': () => wrapXml(`${'<a/>'.repeat(590_000)}<!--${fill('x', 2_360_000)}-->`),
      'deep nesting': () => wrapXml(fill('<a>')),
      'many nests': () => wrapXml(fill(`${'<a>'.repeat(35)}${'</a>'.repeat(35)}`)),
      comments: () => wrapXml(fill('<!---->')),
      'processing instructions': () => wrapXml(fill('<?a b?>')),
      sections: () => wrapXml(`<a>${fill('<![CDATA[x]]>')}</a>`),
      'empty sections': () => wrapXml(`<a>${fill('<![CDATA[]]>')}</a>`),
      namespaces: () => wrapXml(fill('<a xmlns:b="c"/>')),
      'namespaces of one element': () => wrapXml(`<a ${Array.from({ length: 700_000 }, (_, index) => `xmlns:p${index}="u"`).join(' ')}/>`),
      'line ends': () => wrapXml(fill('\r\n')),
      'white space in a tag': () => wrapXml(`<a${fill(' ')}/>`),
      'a name': () => wrapXml(`<${fill('a')}/>`),
    };
    for (const [name, make] of Object.entries(xmlCases)) {
      it(`by ${name} in XML are parsed or rejected within 128 MiB`, async () => {
        // The expensive part is outside of the signature, which was made for another text.
        const signedXml = signXml(xmlList(), operator);
        const [signature = ''] = /<Signature [\s\S]*<\/Signature>/.exec(signedXml) ?? [];
        const end = '</tsl:TrustServiceStatusList>';
        const { refusal, longest, peakMebibytes: peak } = await readInChild(Buffer.from(make().replace(end, signature + end)));
        // Comments are not signed.
        if (name !== 'comments') expect(refusal).to.match(/^(?:malformed|signature)/);
        expect(refusal).not.to.match(/memory|seconds/);
        expect(peak, 'MiB').to.be.at.most(MAX_PEAK_MIB);
        expect(longest, 'ms').to.be.lessThan(50);
      });
    }

    it('by a signed text with many references are parsed within 128 MiB', async () => {
      const text = `<a>${`<b>${'&amp;'.repeat(100)}</b>`.repeat(7_000)}</a>`;
      const { refusal, peakMebibytes: peak, longest } = await readInChild(Buffer.from(signXml(wrapXml(text), operator)));
      expect(refusal).to.equal(undefined);
      expect(peak, 'MiB').to.be.at.most(MAX_PEAK_MIB);
      expect(longest, 'ms').to.be.lessThan(50);
    });

    const jsonCases: Record<string, (repeat: (fragment: string) => string) => string> = {
      'deep nesting': (repeat) => `{"LoTE":${repeat('[')}`,
      'empty objects': (repeat) => `{"LoTE":[${repeat('{},')}{}]}`,
      'small properties': (repeat) => `{"LoTE":[${repeat('{"a":1},')}{}]}`,
      'empty texts': (repeat) => `{"LoTE":[${repeat('"",')}""]}`,
      numbers: (repeat) => `{"LoTE":[${repeat('1,')}1]}`,
      escapes: (repeat) => `{"LoTE":"${repeat('\\u0041')}"}`,
      'one text': (repeat) => `{"LoTE":"${repeat('x')}"}`,
    };
    for (const [name, make] of Object.entries(jsonCases)) {
      it(`by ${name} in JSON are rejected within 128 MiB`, async () => {
        const payload = make((fragment) => fragment.repeat(Math.floor(1_500_000 / fragment.length)));
        const [header] = trustList({ entities: [], signer: operator }, NOW.getTime() / 1000).split('.');
        const text = `${header}.${Buffer.from(payload).toString('base64url')}.${'A'.repeat(86)}`;
        const { refusal, longest, peakMebibytes: peak } = await readInChild(Buffer.from(text));
        expect(refusal).to.match(/^(?:malformed|signature)/);
        expect(peak, 'MiB').to.be.at.most(MAX_PEAK_MIB);
        expect(longest, 'ms').to.be.lessThan(50);
      });
    }
  });
});
